"""Cost of machines: totals, negotiated prices, and sizes without price, which are named and never counted as 0."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from components.plan.cost import ListPrice, Prices, cost_of_machines, cost_of_region
from components.plan.cost_text import cost_change_text, cost_text, unpriced_text
from components.plan.region import plan_region
from components.plan.vm_sizes import VM_SIZES
from components.spec.region import Region
from stacks.file_problems import InvalidFileError
from stacks.load import REGIONS, load_catalog, load_plan, region_names
from stacks.prices import load_prices, prices_text, replace_prices
from tests.stacks.drafts import TEXTS, problems

LISTED = load_prices()
DEV = yaml.safe_load((REGIONS / "dev.yaml").read_text())
NODE, SMALL, DEV_LOCATION = "Standard_NC24ads_A100_v4", "Standard_D2ads_v6", "swedencentral"


def test_a_region_costs_its_pools_and_its_control_planes() -> None:
    for name in region_names():
        plan = load_plan(name)
        cost = cost_of_region(plan, LISTED)
        plane = sum(one.api_servers.count + len(one.etcd.members) + len(one.events_etcd.members) for one in plan.clusters)
        assert cost.total.machines == plan.nodes + plane
        assert cost.total.usd_per_hour == sum(one.usd_per_hour for one in cost.clusters.values())
        assert not cost.total.unpriced
    dev = cost_of_region(load_plan("dev"), LISTED).total
    small, node = (LISTED[size, DEV_LOCATION].usd_per_hour for size in (SMALL, NODE))
    assert dev.usd_per_hour == 18 * small + 2 * node
    assert dev.usd_per_gpu_hour == dev.usd_per_hour / 2
    assert dev.usd_per_month == dev.usd_per_hour * 730
    assert dev.spot == 2


def test_a_negotiated_price_takes_the_place_of_the_list_price_and_is_counted() -> None:
    agreed = {"prices": [{"vm_size": NODE, "usd_per_hour": 2.1}]}
    plan = plan_region(Region.model_validate(DEV | agreed), load_catalog())
    cost = cost_of_region(plan, {key: price for key, price in LISTED.items() if key[0] != SMALL}).total
    assert cost.usd_per_hour == Decimal("4.2")
    assert cost.usd_per_gpu_hour is None
    assert cost_text(cost) == (
        "at least 4.20 US$ per hour, at least 3,066.00 per month (730 h); virtual machines at negotiated prices for 2 machines; "
        "without price: Standard_D2ads_v6 in swedencentral, 18 machines"
    )


def test_a_price_of_one_location_is_never_that_of_another() -> None:
    cost = cost_of_machines({(SMALL, "denmarkeast"): 3, ("Standard_Unknown", DEV_LOCATION): 1, (NODE, DEV_LOCATION): 0}, Prices(LISTED, {}))
    assert cost.usd_per_hour == 0
    assert unpriced_text(cost) == (
        "without price: Standard_D2ads_v6 in denmarkeast, 3 machines; Standard_Unknown in swedencentral, 1 machine"
    )


def test_a_change_of_cost_names_what_has_no_price_before_and_after() -> None:
    prices = Prices({(SMALL, "a"): ListPrice(Decimal("0.5"), "2026-06-18", "s")}, {})
    before, after = (cost_of_machines(machines, prices) for machines in ({(SMALL, "a"): 2}, {(SMALL, "a"): 1, (NODE, "a"): 4}))
    assert cost_change_text(before, after) == (
        "1.00 -> 0.50 US$ per hour (-0.50); virtual machines at list prices of 2026-06-18; "
        "without price: none -> Standard_NC24ads_A100_v4 in a (4 machines)"
    )
    assert cost_change_text(before, before) == ""


def test_negotiated_prices_are_checked_with_place_and_remedy(tmp_path: Path) -> None:
    entries = [(NODE, "2.1"), (NODE, "2.2"), ("Standard_L8s_v3", "1"), ("Standard_D2ads_v7", "1"), (SMALL, "0"), (SMALL, "'1'")]
    text = TEXTS["dev"] + "prices:\n" + "".join(f"  - vm_size: {size}\n    usd_per_hour: {price}\n" for size, price in entries)
    found = [line.partition(": ")[2] for line in problems(tmp_path, text, "dev")]
    assert found == [
        f"prices[1].vm_size: '{NODE}' has a price already, in prices[0]; leave one of the two out",
        (
            "prices[2].vm_size: 'Standard_L8s_v3' is the size of no machine of this region; "
            "leave it out; in use: Standard_D2ads_v6, Standard_NC24ads_A100_v4"
        ),
        (
            "prices[3].vm_size: 'Standard_D2ads_v7' is no VM size that docs/region-file.md lists (a new one is a row of "
            "components/plan/vm_sizes.py); did you mean Standard_D2ads_v6?"
        ),
        "prices[4].usd_per_hour: 0 must be more than 0; give more than 0 (Price of one machine in US dollars per hour)",
        f"prices[5].vm_size: '{SMALL}' has a price already, in prices[4]; leave one of the two out",
        "prices[5].usd_per_hour: '1' is text, not a number; write a number, without quotes (Price of one machine in US dollars per hour)",
    ]


def test_every_size_has_a_dated_price_with_a_pinned_source_in_every_shipped_location() -> None:
    assert {size for size, _ in LISTED} == set(VM_SIZES)
    assert all(price.source.startswith("https://") and price.date for price in LISTED.values())
    assert LISTED["Standard_D32s_v5", "southcentralus"].usd_per_hour == Decimal("1.843")


def test_a_refreshed_price_has_the_new_date_and_one_without_answer_keeps_its_own(tmp_path: Path) -> None:
    old = {(SMALL, place): ListPrice(Decimal("0.5"), "2026-06-18", "https://old") for place in ("a", "b")}
    new = replace_prices(old, {(SMALL, "b"): Decimal("0.25")}, "2026-11-01", "https://new")
    path = tmp_path / "prices.json"
    path.write_text(prices_text(new))
    assert load_prices(path) == new
    assert (new[SMALL, "a"].date, new[SMALL, "b"].date) == ("2026-06-18", "2026-11-01")


def test_a_missing_price_file_is_refused_with_the_option_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidFileError) as refused:
        load_prices(tmp_path / "none.json")
    remedy = "give an existing file of prices with --prices, or leave --prices away for the prices in stacks/prices.json"
    assert str(refused.value) == f"{tmp_path / 'none.json'}: cannot be read: No such file or directory; {remedy}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is invalid: Invalid JSON"),
        ('{"snapshots": [{"date": "2026-06-18", "source": "s", "usd_per_hour": {"A": {"b": "0"}}}]}', "greater than 0"),
        (
            (
                '{"snapshots": [{"date": "2026-06-18", "source": "s", "usd_per_hour": {"A": {"b": "1"}}},'
                ' {"date": "2026-06-19", "source": "s", "usd_per_hour": {"A": {"b": "2"}}}]}'
            ),
            "snapshots[1].usd_per_hour.A.b: 2 is a second price",
        ),
    ],
)
def test_a_damaged_price_file_is_refused_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text)
    with pytest.raises(InvalidFileError) as refused:
        load_prices(path)
    assert reason in str(refused.value)
    assert str(refused.value).endswith("; restore the file from version control, or run `gpufleet prices refresh`")
