"""gpufleet prices: refresh the list prices of VM sizes from the Azure Retail Prices API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import click

from components.plan.cost import ListPrices
from components.plan.vm_sizes import VM_SIZES
from gpufleet.cost import prices_option
from stacks.file_problems import InvalidFileError
from stacks.prices import load_prices, replace_prices, write_prices

MOST_OLD_PRICES = 20
"""Maximum lines about prices that stay with their older date; the others are counted."""


@click.group(short_help="Refresh the list prices of VM sizes.")
def prices() -> None:
    """Refresh the list prices that gpufleet cost, preview and the report use."""


@prices.command(short_help="Get list prices from the Azure Retail Prices API.")
@click.option("--location", metavar="LOCATION", help="Refresh the prices of one Azure location only.  [default: all]")
@click.option("--url", help="Address of the API.  [default: https://prices.azure.com/api/retail/prices]")
@prices_option
def refresh(location: str | None, url: str | None, prices_file: Path) -> None:
    """Get the list prices of all VM sizes from the Azure Retail Prices API, write them to the file, and print each change.

    \b
    The API needs no account: https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices
    One query per VM size gets its prices in all locations: Linux, pay-as-you-go, US dollars; neither Windows nor spot nor low
    priority. The file is replaced at the end, in one step. A price that the API did not return stays with its older date.
      gpufleet prices refresh
      gpufleet prices refresh --location swedencentral

    Exit status: 0 if the file was written; 2 if the API cannot be reached, or the file cannot be written.
    """
    from gpufleet.retail_prices import API, API_VERSION, RetailPricesError, fetch_prices, server_of

    if location is not None and not re.fullmatch(r"[a-z][a-z0-9]{2,29}", location):
        raise click.UsageError(f"--location {location!r} is no Azure location; write it in lower case without spaces: swedencentral")
    if url is not None and (not re.fullmatch(r"https?://[^/\s]+(?:/\S*)?", url) or server_of(url) is None):
        raise click.UsageError(f"--url {url!r} is no address; give one that begins with https://")
    if not prices_file.parent.is_dir():
        raise click.UsageError(f"--prices {prices_file}: there is no folder {prices_file.parent}; create it first")
    old = _present(prices_file)
    api = url or API
    selection, requests = fetch_prices(tuple(VM_SIZES), location, lambda line: click.echo(line, err=True), url=api)
    if not selection.prices:
        where = f" in {location}" if location else ""
        raise RetailPricesError(f"{api}: no price of any VM size{where}; nothing was written: check --location and --url")
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    new = replace_prices(old, selection.prices, day, f"{api}?api-version={API_VERSION}")
    try:
        write_prices(prices_file, new)
    except OSError as error:
        raise RetailPricesError(f"{prices_file}: cannot be written: {error.strerror}; give another file with --prices") from None
    for line in (*_changes(old, selection.prices), *_not_returned(old, selection.prices, location, day), *_ambiguous(selection.ambiguous)):
        click.echo(line)
    sizes, places = ({key[part] for key in selection.prices} for part in (0, 1))
    click.echo(
        f"{prices_file}: {len(selection.prices):,} prices of {day}: {len(sizes)} of {len(VM_SIZES)} sizes in {len(places)} locations "
        f"({requests} requests)"
    )


def _present(path: Path) -> ListPrices:
    """Return the prices of the file; none, with a warning, if it is missing or damaged, since the refresh replaces it."""
    if not path.exists():
        return {}
    try:
        return load_prices(path)
    except InvalidFileError as error:
        click.echo(f"{error}; this refresh replaces it", err=True)
        return {}


def _changes(old: ListPrices, received: Mapping[tuple[str, str], Decimal]) -> Iterator[str]:
    """Yield a line per changed or new price, and one for the number of unchanged prices."""
    same = 0
    for key, price in sorted(received.items()):
        before = old.get(key)
        if before is not None and before.usd_per_hour == price:
            same += 1
        else:
            yield f"{key[0]} in {key[1]}: {'none' if before is None else before.usd_per_hour} -> {price.normalize():f} US$ per hour"
    yield f"unchanged: {same:,}"


def _not_returned(old: ListPrices, received: Mapping[tuple[str, str], Decimal], location: str | None, day: str) -> list[str]:
    """Return a line per price that the API did not return, and that stays with its older date."""
    keys = sorted(key for key in old if key not in received and location in (None, key[1]) and old[key].date != day)
    lines = [f"not returned, kept: {size} in {place}: {old[size, place].usd_per_hour} of {old[size, place].date}" for size, place in keys]
    more = [f"not returned, kept: {len(lines) - MOST_OLD_PRICES:,} more"] if len(lines) > MOST_OLD_PRICES else []
    return [*lines[:MOST_OLD_PRICES], *more]


def _ambiguous(found: Mapping[tuple[str, str], tuple[Decimal, ...]]) -> Iterator[str]:
    for (size, place), values in sorted(found.items()):
        yield f"several prices, none taken: {size} in {place}: {', '.join(map(str, values))}"
