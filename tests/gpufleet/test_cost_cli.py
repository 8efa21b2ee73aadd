"""Output of `gpufleet cost` and `gpufleet prices`: tables in narrow and wide terminals, JSON, missing and negotiated prices."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from rich.console import Console

from components.plan.cost import cost_of_region
from components.plan.cost_text import dollars
from components.plan.vm_sizes import VM_SIZES
from gpufleet.cost import WIDE, _table
from gpufleet.retail_prices import API, server_of
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


def meter(size: str, location: str, price: float, **changed: object) -> dict[str, object]:
    """An item as the API documents it, for a pay-as-you-go machine with Linux."""
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": price,
        "unitPrice": price,
        "armRegionName": location,
        "effectiveStartDate": "2026-01-01T00:00:00Z",
        "meterName": "m",
        "productName": "Virtual Machines Dadsv6 Series",
        "skuName": "s",
        "serviceName": "Virtual Machines",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": size,
    } | changed


OTHERS = (
    meter(SMALL, "swedencentral", 9.1, productName="Virtual Machines Dadsv6 Series Windows"),
    meter(SMALL, "swedencentral", 9.2, skuName="D2ads v6 Spot", meterName="D2ads v6 Spot"),
    meter(SMALL, "swedencentral", 9.3, meterName="D2ads v6 Low Priority"),
    meter(SMALL, "swedencentral", 9.4, type="Reservation"),
    meter(SMALL, "swedencentral", 9.5, tierMinimumUnits=100.0),
    meter(SMALL, "swedencentral", 9.6, effectiveStartDate="2999-01-01T00:00:00Z"),
    meter(SMALL, "swedencentral", 9.7, isPrimaryMeterRegion=False),
    meter(SMALL, "swedencentral", 9.8, effectiveStartDate="2025-01-01T00:00:00Z"),
    meter(SMALL, "swedencentral", 9.9, currencyCode="EUR"),
    meter(SMALL, "swedencentral", 9.9, effectiveStartDate=None),
    meter(SMALL, "swedencentral", 10_001),
)


class Api(BaseHTTPRequestHandler):
    """The Retail Prices API with two pages for one size; the first request is answered by 429, the third by 503."""

    queries: ClassVar[list[dict[str, list[str]]]] = []

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        self.queries.append(query)
        if len(self.queries) in (1, 3):
            self.send_response(429 if len(self.queries) == 1 else 503)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        words = query["$filter"][0]
        items: list[dict[str, object]] = []
        link = None
        if f"armSkuName eq '{SMALL}'" in words and "$skip" not in query:
            items = [meter(SMALL, "swedencentral", 0.125), *OTHERS]
            link = f"http://{self.headers['Host']}/api?{urlencode({'$filter': words, '$skip': 1000})}"
        elif f"armSkuName eq '{SMALL}'" in words:
            items = [meter(SMALL, "eastus", 0.114), meter(SMALL, "westus3", 1), meter(SMALL, "westus3", 2)]
        body = json.dumps({"BillingCurrency": "USD", "Items": items, "NextPageLink": link, "Count": len(items)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def api() -> Iterator[str]:
    Api.queries.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/api"
        server.shutdown()
        thread.join()


def test_a_refresh_takes_the_linux_price_of_every_page_and_keeps_what_was_not_answered(api: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    old = load_prices()
    path.write_text(prices_text(old))
    result = run("prices", "refresh", "--url", api, "--prices", str(path))
    assert result.returncode == 0, result.stderr
    new = load_prices(path)
    assert new[SMALL, "swedencentral"].usd_per_hour == Decimal("0.125")
    assert new[SMALL, "swedencentral"].date > "2026-06-18"
    assert new[SMALL, "westus3"] == old[SMALL, "westus3"]
    assert {key for key, price in new.items() if price != old[key]} == {(SMALL, "swedencentral"), (SMALL, "eastus")}
    lines = result.stdout.splitlines()
    assert lines[:2] == [f"{SMALL} in swedencentral: 0.122 -> 0.125 US$ per hour", "unchanged: 1"]
    assert f"several prices, none taken: {SMALL} in westus3: 1, 2" in lines
    assert f"not returned, kept: {len(old) - 2 - 20:,} more" in lines
    assert ": 2 prices of " in lines[-1]
    assert "prices: HTTP 429; next attempt in 1 s" in result.stderr
    assert "prices: HTTP 503; next attempt in 1 s" in result.stderr
    first = Api.queries[0]
    assert (first["api-version"], first["currencyCode"]) == (["2023-01-01-preview"], ["'USD'"])
    assert first["$filter"] == [
        "serviceName eq 'Virtual Machines' and priceType eq 'Consumption' and armSkuName eq 'Standard_ND96isr_H100_v5'"
    ]
    assert len(Api.queries) == len(VM_SIZES) + 1 + 2


def test_a_next_page_is_on_the_same_server_with_or_without_the_default_port() -> None:
    assert server_of("https://prices.azure.com:443/api/retail/prices?$skip=1000") == server_of(API)
    assert server_of("https://prices.azure.com.example.org/api") != server_of(API) != server_of("http://prices.azure.com/api")


def test_an_api_that_is_not_reachable_or_answers_nothing_changes_no_file(api: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        result = run("prices", "refresh", "--url", f"http://127.0.0.1:{closed.getsockname()[1]}/", "--prices", str(path))
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert "nothing was written: run this where the internet is reachable" in line
    result = run("prices", "refresh", "--url", api, "--location", "nowhere", "--prices", str(tmp_path / "no" / "prices.json"))
    assert result.returncode == 2
    assert "create it first" in result.stderr
    assert list(tmp_path.iterdir()) == []
    result = run("prices", "refresh", "--url", api, "--location", "nowhere", "--prices", str(path))
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1] == (f"{api}: no price of any VM size in nowhere; nothing was written: check --location and --url")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["https://host:port/api", "https://[", "https://a b/api", "ftp://host/api"])
def test_an_invalid_address_is_refused_before_a_request(address: str) -> None:
    result = run("prices", "refresh", "--url", address)
    assert result.returncode == 2
    assert f"--url {address!r} is no address; give one that begins with https://" in result.stderr
    assert "attempt" not in result.stderr


@pytest.mark.parametrize("proxy", ["no-proxy", "http://[::"])
def test_an_invalid_proxy_is_reported_as_such(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", proxy)
    result = run("prices", "refresh", "--url", "http://prices.example/api")
    assert result.returncode == 2
    assert result.stderr == (
        "http://prices.example/api: its address, or that of the proxy in HTTPS_PROXY, is invalid; nothing was written: check both\n"
    )
