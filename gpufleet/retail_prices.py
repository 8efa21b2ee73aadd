"""Client of the Azure Retail Prices API, for list prices of virtual machines with Linux.

https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

import aiohttp

from components.errors import GpufleetError
from stacks.prices import MOST_USD_PER_HOUR

API = "https://prices.azure.com/api/retail/prices"
API_VERSION = "2023-01-01-preview"
"""Version with case-sensitive filter values; it answers at most 1,000 items per page, with the link of the next page in NextPageLink."""
OTHER_METERS = (" Spot", " Low Priority")
"""Ends of skuName and meterName of machines that are not pay-as-you-go."""
OTHER_PRODUCTS = ("Windows", "CloudServices", "Cloud Services")
"""Parts of productName of meters that are not those of a virtual machine with Linux."""
ATTEMPTS, FIRST_WAIT, LONGEST_WAIT = 6, 1.0, 60.0
"""Requests for one page, and the seconds before the second one; each further wait is twice as long."""
REQUEST_SECONDS, WHOLE_SECONDS = 60.0, 900.0
MOST_PAGES = 100
"""Maximum pages of one query; a VM size has fewer than 1,000 meters in all locations."""
RETRIED = (408, 429, 500, 502, 503, 504)

Item = Mapping[str, Any]
Report = Callable[[str], None]
Key = tuple[str, str]


class RetailPricesError(GpufleetError):
    """The API cannot be reached, or its answer cannot be used; nothing was written."""


@dataclass(frozen=True)
class Selection:
    """Prices by VM size and location; ambiguous has the sizes and locations for which the API gives several prices."""

    prices: Mapping[Key, Decimal]
    ambiguous: Mapping[Key, tuple[Decimal, ...]]


def filter_text(size: str, location: str | None) -> str:
    """Return the filter of one query: pay-as-you-go meters of a VM size, in one location or in all."""
    terms = {"serviceName": "Virtual Machines", "priceType": "Consumption", "armSkuName": size}
    if location is not None:
        terms["armRegionName"] = location
    return " and ".join(f"{key} eq '{value}'" for key, value in terms.items())


def select(items: Iterable[Item], now: datetime) -> Selection:
    """Return the price of each VM size and location: of primary meters rather than others, and of these the latest in effect."""
    candidates: dict[Key, list[tuple[bool, str, Decimal]]] = defaultdict(list)
    for item in items:
        if _is_linux_price(item, now):
            price = Decimal(str(item["retailPrice"]))
            entry = (item.get("isPrimaryMeterRegion") is True, str(item.get("effectiveStartDate") or ""), price)
            candidates[str(item["armSkuName"]), str(item["armRegionName"])].append(entry)
    prices, ambiguous = {}, {}
    for key, entries in candidates.items():
        best = max(entry[:2] for entry in entries)
        found = sorted({price for *rank, price in entries if tuple(rank) == best})
        if len(found) == 1:
            prices[key] = found[0]
        else:
            ambiguous[key] = tuple(found)
    return Selection(prices, ambiguous)


def _is_linux_price(item: Item, now: datetime) -> bool:
    """Return whether an item is the price in effect of one hour of a pay-as-you-go machine with Linux, from the first unit."""
    expected = {"serviceName": "Virtual Machines", "type": "Consumption", "currencyCode": "USD", "unitOfMeasure": "1 Hour"}
    if any(item.get(key) != value for key, value in expected.items()) or item.get("tierMinimumUnits") != 0:
        return False
    if any(str(item.get(key) or "").endswith(OTHER_METERS) for key in ("skuName", "meterName")):
        return False
    if any(word in str(item.get("productName") or "") for word in OTHER_PRODUCTS):
        return False
    start, end = (_time(item.get(key)) for key in ("effectiveStartDate", "effectiveEndDate"))
    if (start is not None and start > now) or (end is not None and end <= now):
        return False
    try:
        return (
            0 < Decimal(str(item.get("retailPrice"))) <= MOST_USD_PER_HOUR
            and bool(item.get("armSkuName"))
            and bool(item.get("armRegionName"))
        )
    except InvalidOperation:
        return False


def _time(value: object) -> datetime | None:
    try:
        read = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def fetch_prices(
    sizes: Sequence[str], location: str | None, report: Report, *, url: str = API, first_wait: float = FIRST_WAIT
) -> tuple[Selection, int]:
    """Return the prices of VM sizes, in one location or in all, and the number of requests; raise RetailPricesError.

    Requests are sent one after the other. An answer 429 or 5xx and a broken connection are retried, after the time in Retry-After or with
    growing waits. `report` receives a line per size and per retry.
    """
    return asyncio.run(_fetch(sizes, location, report, url, first_wait))


async def _fetch(sizes: Sequence[str], location: str | None, report: Report, url: str, first_wait: float) -> tuple[Selection, int]:
    items: list[Item] = []
    requests = 0
    try:
        async with (
            asyncio.timeout(WHOLE_SECONDS),
            aiohttp.ClientSession(trust_env=True, timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS)) as session,
        ):
            pages = _Pages(session, url, report, first_wait)
            for number, size in enumerate(sizes, 1):
                received = await pages.of(filter_text(size, location))
                # A filter that a server ignores would otherwise give prices of sizes or locations that were not requested.
                items += [item for item in received if item.get("armSkuName") == size and location in (None, item.get("armRegionName"))]
                report(f"prices: {size} ({number} of {len(sizes)}): {len(received):,} meters")
            requests = pages.requests
    except TimeoutError:
        raise RetailPricesError(f"{url}: not complete after {WHOLE_SECONDS:.0f} s; nothing was written: try again later") from None
    return select(items, datetime.now(UTC)), requests


class _Pages:
    """Pages of queries to one API, over one session."""

    def __init__(self, session: aiohttp.ClientSession, url: str, report: Report, first_wait: float) -> None:
        self._session, self._url, self._report, self._first_wait = session, url, report, first_wait
        self.requests = 0

    async def of(self, filter_words: str) -> list[Item]:
        """Return the items of all pages of a query."""
        query = urlencode({"api-version": API_VERSION, "currencyCode": "'USD'", "$filter": filter_words})
        link = f"{self._url}?{query}"
        items: list[Item] = []
        for _ in range(MOST_PAGES):
            page = await self._page(link)
            if not isinstance(page, dict) or not isinstance(page.get("Items"), list):
                raise RetailPricesError(f"{self._url}: the answer has no list Items; nothing was written: check --url")
            items += [item for item in page["Items"] if isinstance(item, dict)]
            if not page.get("NextPageLink"):
                return items
            link = str(page["NextPageLink"])
            if server_of(link) is None or server_of(link) != server_of(self._url):
                raise RetailPricesError(f"{self._url}: the next page is on another server: {link[:80]}; nothing was written: check --url")
        raise RetailPricesError(f"{self._url}: more than {MOST_PAGES} pages for {filter_words}; nothing was written: check --url")

    async def _page(self, link: str) -> Any:
        """Return the decoded body of one page, with retries."""
        for attempt in range(ATTEMPTS):
            wait = min(self._first_wait * 2**attempt, LONGEST_WAIT)
            self.requests += 1
            try:
                async with self._session.get(link) as answer:
                    if answer.status == 200:
                        return self._decoded(await answer.read())
                    reason = f"HTTP {answer.status}"
                    if answer.status not in RETRIED:
                        raise RetailPricesError(f"{self._url}: {reason} {answer.reason}; nothing was written: check --url")
                    wait = max(wait, _retry_after(answer.headers.get("Retry-After")))
            except ValueError:
                reason = "its address, or that of the proxy in HTTPS_PROXY, is invalid"
                raise RetailPricesError(f"{self._url}: {reason}; nothing was written: check both") from None
            except aiohttp.ClientConnectorError as error:
                raise unreachable(self._url, str(error.os_error.strerror or error)) from None
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                reason = str(error) or type(error).__name__
            if attempt + 1 < ATTEMPTS:
                self._report(f"prices: {reason}; next attempt in {math.ceil(wait)} s")
                await asyncio.sleep(wait)
        raise unreachable(self._url, f"{reason}, also after {ATTEMPTS} attempts")

    def _decoded(self, body: bytes) -> Any:
        try:
            return json.loads(body, parse_float=Decimal)
        except ValueError:
            raise RetailPricesError(f"{self._url}: the answer is no JSON; nothing was written: check --url") from None


def server_of(url: str) -> tuple[str, str, int | None] | None:
    """Return scheme, host and port of an address, None for an invalid one; the API writes the default port in NextPageLink."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    return (parts.scheme, parts.hostname, port or {"https": 443, "http": 80}.get(parts.scheme)) if parts.hostname else None


def unreachable(url: str, reason: str) -> RetailPricesError:
    """Return the error for an API that cannot be reached, with the remedy."""
    return RetailPricesError(
        f"{url}: {reason}; nothing was written: run this where the internet is reachable (HTTPS_PROXY is used) and copy "
        "stacks/prices.json here, or enter prices under `prices` in the region file"
    )


def _retry_after(value: str | None) -> float:
    """Return the seconds of a Retry-After header, a number or a date, at most LONGEST_WAIT; 0 without one."""
    if not value:
        return 0.0
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return 0.0
    return min(max(seconds, 0.0), LONGEST_WAIT)
