"""The report is one page that needs nothing else, shows every cluster, pool and scale set once, and says first what is wrong."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from components.plan.cost import ListPrices, cost_of_region
from components.plan.cost_text import dollars
from components.plan.limits import LimitRow, check
from components.plan.model import RegionPlan
from components.plan.region import plan_region
from components.spec.region import Region
from rehearsal.checks import CHECKS, Finding
from rehearsal.local_up.timeline import Timeline, TimelineBar
from rehearsal.local_up.timeline import TimelineRow as Part
from rehearsal.program.graph import Graph, Resource
from rehearsal.report import render_report, write_report
from rehearsal.report.limit_lines import limit_lines
from rehearsal.report.numbers import number, percent, spare
from rehearsal.report.page import render_refusal
from rehearsal.report.tables import gpus_by_model, type_rows
from rehearsal.rotation.region_rotation import RegionRotation, RegionRun, rotate_region
from stacks.file_problems import InvalidFileError, Position, problem
from stacks.load import load_catalog, load_plan, load_region
from stacks.prices import load_prices

SHIPPED = ("dev", "swedencentral", "southcentralus")
VOID = {"meta", "link", "br", "hr", "img", "input"}
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '<script>alert("1")</script>&\'"'


def graph(*types: str) -> Graph:
    items = ((f"{place}", name, not name.startswith("gpufleet:")) for place, name in enumerate(types))
    return Graph(tuple(Resource(f"urn:{place}", name, place, None, custom, None, {}, {}) for place, name, custom in items), {})


EMPTY = graph()
LISTED = load_prices()
UP = Timeline(
    seconds=5_400.0,
    rows=(
        Part("dev-base", (TimelineBar("hub", 0.0, 2_700.0, 9),)),
        Part("dev", (TimelineBar("network", 2_700.0, 2_900.0, 20), TimelineBar("pool-gpu", 2_900.0, 5_400.0, 1))),
    ),
    machines=12,
    running=12,
    outdated_count=0,
    addresses=96,
)


def page_of(
    plan: RegionPlan,
    findings: tuple[Finding, ...] = (),
    limits: tuple[LimitRow, ...] | None = None,
    base: Graph = EMPTY,
    own: Graph = EMPTY,
    listed: ListPrices | None = None,
    rotation: RegionRotation | None = None,
) -> str:
    timings = {"plan": 0.31, "clusters": 9.24}
    return render_report(
        plan,
        base,
        own,
        limits=check(plan) if limits is None else limits,
        checks=CHECKS,
        findings=findings,
        timings=timings,
        made="a day",
        timeline=UP,
        cost=cost_of_region(plan, LISTED if listed is None else listed),
        rotation=rotation,
    )


def test_notes_such_as_a_missing_capture_are_on_the_page_beside_the_verdict() -> None:
    plan = load_plan("dev")
    cost = cost_of_region(plan, LISTED)
    common = {
        "limits": check(plan),
        "checks": CHECKS,
        "findings": (),
        "timings": {"plan": 0.3},
        "made": "a day",
        "timeline": UP,
        "cost": cost,
    }
    page = render_report(plan, EMPTY, EMPTY, notes=(f"cpu@2026.11.0 has no capture in swedencentral {HOSTILE}",), **common)
    text = " ".join(Reader(page).text)
    assert "Before pulumi up:" in text
    assert f"cpu@2026.11.0 has no capture in swedencentral {HOSTILE}" in text
    assert "Before pulumi up:" not in " ".join(Reader(shipped_page("dev")).text)


def test_the_rotation_has_a_section_with_a_bar_per_cluster_and_four_panels_each() -> None:
    plan = load_plan("dev")
    rotation = rotate_region(plan, RegionRun(1_795_440_000, seed=1))
    page = page_of(plan, rotation=rotation)
    reader = Reader(page)
    assert reader.marked("rotation") == Counter(["dev"])
    assert 'href="#rotation"' in page
    text = " ".join(reader.text)
    for part in (
        "modelled population",
        "Unavailable machines by state",
        "Nodes by state",
        "Window and starts",
        "GPU-hours lost, since the start",
    ):
        assert part in text
    pictures(page)
    finite = re.findall(r' d="M([^"]*)"', page)
    assert finite
    assert not any("nan" in data or "inf" in data for data in finite)
    assert "#rotation" not in page_of(plan)


@cache
def shipped_page(name: str) -> str:
    return page_of(load_plan(name))


class Reader(HTMLParser):
    """Reads a page: its tags in balance, its attributes, its visible text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)

    def marked(self, name: str) -> Counter[str]:
        """Values of a data attribute."""
        return Counter(value for _, attribute, value in self.attributes if attribute == f"data-{name}")


def pictures(page: str) -> list[ET.Element]:
    return [ET.fromstring(text) for text in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]  # noqa: S314 the page is ours


@pytest.mark.parametrize("name", SHIPPED)
def test_the_page_is_balanced_and_its_pictures_are_xml_with_titles(name: str) -> None:
    reader = Reader(shipped_page(name))
    assert reader.open == []
    drawings = [picture for picture in pictures(shipped_page(name)) if picture.get("aria-hidden") != "true"]
    assert len(drawings) > 10
    assert all(picture.findtext(f"{SVG}title") for picture in drawings)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_page_loads_nothing_and_runs_nothing(name: str) -> None:
    reader = Reader(shipped_page(name))
    assert not [tag for tag, _, _ in reader.attributes if tag in ("script", "link", "img", "iframe", "object")]
    assert not [name for _, name, _ in reader.attributes if name in ("src", "srcset", "style") or name.startswith("on")]
    targets = {tag for tag, attribute, value in reader.attributes if attribute in ("href", "xlink:href") and not value.startswith("#")}
    assert targets == {"a"}
    style = re.search(r"<style>(.*?)</style>", shipped_page(name), re.DOTALL)
    assert style
    assert "@import" not in style[1]
    assert set(re.findall(r"url\(([^)]*)\)", style[1])) == {"#stripes"}


@pytest.mark.parametrize("name", SHIPPED)
def test_every_cluster_pool_set_and_member_is_on_the_map_once(name: str) -> None:
    plan, reader = load_plan(name), Reader(shipped_page(name))
    pools = [(cluster, pool) for cluster in plan.clusters for pool in cluster.pools]
    members = [member.name for cluster in plan.clusters for ring in (cluster.etcd, cluster.events_etcd) for member in ring.members]
    assert reader.marked("hub") == {plan.hub.vnet_name: 1}
    assert reader.marked("cluster") == {cluster.name: 1 for cluster in plan.clusters}
    assert reader.marked("pool") == {f"{cluster.name}/{pool.name}": 1 for cluster, pool in pools}
    assert reader.marked("scale-set") == {item.name: 1 for _, pool in pools for item in pool.scale_sets}
    assert reader.marked("machine") == dict.fromkeys(members, 1)


@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_on_a_picture_lies_outside_it(name: str) -> None:
    for picture in pictures(shipped_page(name)):
        if picture.get("viewBox"):
            _, _, width, height = map(float, str(picture.get("viewBox")).split())
            for item in picture.iter(f"{SVG}rect"):
                right = float(item.get("x", 0)) + float(item.get("width", 0))
                bottom = float(item.get("y", 0)) + float(item.get("height", 0))
                assert right <= width + 0.1
                assert bottom <= height + 0.1
            assert all(0 <= float(item.get("x", 0)) <= width and float(item.get("y", 0)) <= height for item in picture.iter(f"{SVG}text"))


def grown(region: Region, clusters: int, **pool: int) -> RegionPlan:
    """A plan of a region with copies of its first cluster, and its pools changed."""
    first = region.clusters[0]
    pools = tuple(item.model_copy(update=pool) for item in first.pools)
    copies = tuple(first.model_copy(update={"name": f"cluster-{slot:02d}", "slot": slot, "pools": pools}) for slot in range(clusters))
    return plan_region(region.model_copy(update={"clusters": copies, "address_space": "10.0.0.0/10"}), load_catalog())


def test_a_region_of_nine_full_clusters_still_fits_a_small_page() -> None:
    page = page_of(grown(load_region("southcentralus", load_catalog()), 9))
    assert len(Reader(page).marked("scale-set")) == 675
    assert len(page.encode()) < 1_000_000


def test_broken_limits_come_first_with_value_bound_reason_and_remedy() -> None:
    plan = grown(load_region("southcentralus", load_catalog()), 1, pods_per_node=30)
    page, broken = page_of(plan), [row for row in check(plan) if row.broken]
    assert broken
    text = re.sub(r"\s+", " ", " ".join(Reader(page).text))
    assert f"Not ready to deploy: {len(broken)} exceeded limit" in text
    table = page[page.index('<table class="broken-limits">') : page.index("<h3>By headroom</h3>")]
    shown = " ".join(Reader(table[: table.index("</table>")]).text)
    for row in broken:
        assert all(part in shown for part in (row.where, row.limit, number(row.use), row.reason, row.remedy))


def test_a_refused_file_is_named_with_its_errors_also_if_it_is_not_the_region_file() -> None:
    found = [problem(file, ("a",), Position(3, 1), "'<b>'", "is wrong", "write c") for file in ("prices.json", "x.yaml", "x.yaml")]
    page = render_refusal("x", "gpufleet rehearse 'a b/x.yaml'", InvalidFileError(found), (), "a day")
    text = re.sub(r"\s+", " ", " ".join(Reader(page).text))
    assert "prices.json and x.yaml: 3 errors. The limits cannot be computed" in text
    assert text.count("'<b>' is wrong write c") == 3
    assert "run again: gpufleet rehearse 'a b/x.yaml'" in text


def test_a_pool_past_the_last_subnet_slot_is_drawn_all_the_same() -> None:
    plan = grown(load_region("southcentralus", load_catalog()), 1, slot=20)
    assert "no such slot" in page_of(plan)


def test_findings_are_shown_with_both_sides_and_make_the_verdict_bad() -> None:
    finding = Finding(CHECKS[0], "group/set-001", "100 machines", "99 machines", "let the program take the plan's number")
    page = page_of(load_plan("dev"), findings=(finding,))
    text = re.sub(r"\s+", " ", " ".join(Reader(page).text))
    assert "Not ready to deploy: 0 exceeded limits, 1 difference" in text
    assert all(part in text for part in (finding.where, finding.planned, finding.found, finding.remedy))
    assert '<div class="verdict bad">' in page


def test_hostile_names_stay_text() -> None:
    plan = load_plan("dev")
    cluster = plan.clusters[0]
    pools = tuple(
        replace(
            pool,
            spec=pool.spec.model_copy(update={"name": HOSTILE}),
            scale_sets=tuple(replace(item, name=f"{HOSTILE}-{item.index}") for item in pool.scale_sets),
        )
        for pool in cluster.pools
    )
    hostile = replace(cluster, spec=cluster.spec.model_copy(update={"name": HOSTILE}), pools=pools)
    named = replace(plan, spec=plan.spec.model_copy(update={"name": HOSTILE}), clusters=(hostile,))
    row = check(plan)[0]
    rows = (
        replace(row, where=HOSTILE, reason=HOSTILE, remedy=HOSTILE, limit=HOSTILE, unit=HOSTILE, broken=True, source="javascript:alert(1)"),
    )
    finding = Finding(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    page = page_of(named, findings=(finding,), limits=rows, base=graph(HOSTILE), own=graph(f"azure-native:{HOSTILE}"))
    reader = Reader(page)
    assert "<script" not in page
    assert reader.open == []
    assert not [value for _, name, value in reader.attributes if name == "href" and value.startswith("javascript")]
    assert HOSTILE in reader.marked("cluster")
    for picture in pictures(page):
        assert picture.tag == f"{SVG}svg"


def test_writing_puts_the_page_in_a_folder_of_the_region(tmp_path: Path) -> None:
    plan = load_plan("dev")
    cost = cost_of_region(plan, LISTED)
    page = write_report(
        tmp_path / "new", plan, graph(), graph(), limits=check(plan), checks=CHECKS, findings=(), timings={}, timeline=UP, cost=cost
    )
    assert page == tmp_path / "new" / "dev" / "report.html"
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_machines_and_their_cost_are_added_up_per_cluster_and_region() -> None:
    plan = load_plan("southcentralus")
    cost = cost_of_region(plan, LISTED)
    assert gpus_by_model(cost.rows) == (("H100", 160_000), ("A100", 15_076))
    page = shipped_page("southcentralus")
    for one in (*cost.clusters.values(), cost.total):
        assert f'<td class="n">{dollars(one.usd_per_hour)}</td><td class="n">{one.usd_per_month:,.0f}</td>' in page
    names = [f"cluster {name}" for name in cost.clusters]
    assert re.findall(r'<tr class="sum"><td colspan="4">([^<]+)</td>', page) == [*names, "region southcentralus"]
    assert f"<dd>{dollars(cost.total.usd_per_hour)}<small>" in page
    assert "without price" not in page


def test_a_size_without_price_is_named_in_the_report_and_not_counted_as_0() -> None:
    plan = load_plan("southcentralus")
    listed = {key: price for key, price in LISTED.items() if key[0] != "Standard_ND96amsr_A100_v4"}
    page = page_of(plan, listed=listed)
    assert page.count('<td class="n">no price</td>') == 1
    named = "without price: Standard_ND96amsr_A100_v4 in southcentralus, 1,800 machines"
    assert page.count(named) == 2
    assert f"<dd>at least {dollars(cost_of_region(plan, listed).total.usd_per_hour)}<small>" in page


def test_resource_types_are_counted_per_stack_and_family() -> None:
    rows = type_rows(
        graph("azure-native:network:Subnet", "pulumi:pulumi:Stack"), graph("azure-native:network:Subnet", "gpufleet:etcd:Etcd", "other:x:Y")
    )
    assert {family: [(row.name, row.base, row.region) for row in group] for family, group in rows.items()} == {
        "Azure": [("network:Subnet", 1, 1)],
        "other": [("x:Y", 0, 1)],
    }


def test_the_number_of_resources_leaves_out_components_and_the_stack_as_the_table_does() -> None:
    base = graph("pulumi:pulumi:Stack", "azure-native:network:Subnet")
    page = page_of(load_plan("dev"), base=base, own=graph("gpufleet:etcd:Etcd", "kubernetes:core/v1:Namespace"))
    assert "<dt>Resources</dt><dd>2<small>1 base, 1 clusters</small>" in page


def test_the_page_shows_when_each_part_came_up() -> None:
    page = shipped_page("dev")
    assert Reader(page).marked("up") == {"dev-base: hub": 1, "dev: network": 1, "dev: pool-gpu": 1}
    assert "<title>dev: pool-gpu: 1 resource, from 0:48 to 1:30</title>" in page
    assert "1:30<small>hours of Azure's time, until 12 of 12 machines in scale sets run" in page.replace("&#39;", "'")


def test_limits_read_from_the_tightest_place_to_the_roomiest() -> None:
    lines = limit_lines(check(load_plan("southcentralus")))
    rooms = [line.row.headroom for line in lines.measured]
    assert rooms == sorted(rooms, key=lambda room: room or 0)
    assert len({line.row.limit for line in lines.measured}) == len(lines.measured)
    assert {line.look for line in lines.measured if line.row.use > line.row.bound * 0.9 and not line.row.at_least} == {"tight"}
    (ports,) = (line for line in lines.measured if line.row.limit.startswith("SNAT"))
    assert ports.bound_note == "at least "


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (number(None), "–"),
        (number(1_920_000.0), "1,920,000"),
        (number(4.47), "4.47"),
        (number(69.0), "69"),
        (percent(None), "–"),
        (percent(0.0), "0 %"),
        (percent(0.0052), "0.5 %"),
        (percent(0.0999), "10 %"),
        (spare(None), "–"),
        (spare(0.0), "0 %"),
        (spare(0.02284), "2.2 %"),
        (spare(0.0999), "9.9 %"),
        (spare(0.3), "30 %"),
        (percent(-0.5), "-50 %"),
        (dollars(Decimal("2480.924")), "2,480.92"),
    ],
)
def test_numbers_are_written_for_people(written: str, expected: str) -> None:
    assert written == expected
