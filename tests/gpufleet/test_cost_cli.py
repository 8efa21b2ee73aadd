"""Output of `gpufleet cost` and `gpufleet prices`: tables in narrow and wide terminals, JSON, missing and negotiated prices."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

from rich.console import Console

from components.plan.cost import cost_of_region, dollars
from gpufleet.cost import WIDE, _table
from stacks.load import REGIONS, load_plan
from stacks.prices import load_prices, prices_text

GPUFLEET = Path(sys.executable).with_name("gpufleet")
NODE, SMALL = "Standard_NC24ads_A100_v4", "Standard_D2ads_v6"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([GPUFLEET, *words], capture_output=True, text=True, check=False)


def test_every_amount_fits_a_narrow_and_a_wide_terminal() -> None:
    plan = load_plan("southcentralus")
    found = cost_of_region(plan, load_prices())
    for width in (80, 200):
        console = Console(width=width, highlight=False)
        with console.capture() as captured:
            console.print(_table(plan, found, wide=width >= WIDE))
        text = captured.get()
        assert "…" not in text
        assert all(len(line.rstrip()) <= width for line in text.splitlines())
        for row in found.rows:
            assert row.usd_per_hour is not None
            assert dollars(row.usd_per_hour) in text
            assert row.size.name.removeprefix("Standard_") in text
        assert text.splitlines()[-1].split()[-3:] == ["2,433,192.82", "1,776,230,759", "13.90"]


def test_a_size_without_price_is_named_and_a_negotiated_price_is_marked(tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text(prices_text({key: price for key, price in load_prices().items() if key[0] != SMALL}))
    draft = tmp_path / "dev.yaml"
    draft.write_text((REGIONS / "dev.yaml").read_text() + f"prices:\n  - vm_size: {NODE}\n    usd_per_hour: 2.1\n")
    lines = run("cost", str(draft), "--prices", str(prices)).stdout.splitlines()
    assert any(line.split() == ["gpu", "NC24ads_A100_v4", "2", "2.1*", "4.20", "3,066", "2.10"] for line in lines)
    assert any(line.split() == ["cpu", "D2ads_v6", "10", "no", "price", "–", "–", "–"] for line in lines)
    assert any(line.split() == ["total", "dev", "20", "at", "least", "4.20", "3,066", "–"] for line in lines)
    assert any(line.endswith("without price: Standard_D2ads_v6 in swedencentral, 18 machines") for line in lines)
    total = json.loads(run("cost", str(draft), "--prices", str(prices), "--json").stdout)["total"]
    assert total["without_price"] == [{"size": SMALL, "location": "swedencentral", "machines": 18}]
    assert (total["complete"], total["negotiated_machines"], Decimal(str(total["usd_per_hour"]))) == (False, 2, Decimal("4.2"))
