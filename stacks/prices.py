"""Reader and writer of the list prices of virtual machines, stacks/prices.json.

The file has one entry per snapshot, with its date and source. A price belongs to exactly one snapshot: a refresh moves the prices that it
receives to its own, and leaves the others with their older date.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from components.plan.cost import ListPrice, ListPrices
from components.plan.vm_sizes import VM_SIZES
from stacks.atomic_write import write_atomically
from stacks.file_problems import InvalidFileError, invalid_file, problem, shown
from stacks.load import ROOT

PRICES = ROOT / "stacks" / "prices.json"
"""List prices that gpufleet ships."""
MOST_USD_PER_HOUR = 10_000
"""Upper bound of a price, far above that of any machine: the file does not take a higher one."""
REMEDY = "restore the file from version control, or run `gpufleet prices refresh`"
GIVE_FILE = "give an existing file of prices with --prices, or leave --prices away for the prices in stacks/prices.json"


class PriceSnapshot(BaseModel):
    """List prices of one date and source, in US dollars per hour by VM size and location."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    date: date
    source: str
    usd_per_hour: dict[str, dict[str, Annotated[Decimal, Field(gt=0, le=MOST_USD_PER_HOUR)]]]


class PriceFile(BaseModel):
    """Content of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    snapshots: tuple[PriceSnapshot, ...]


def load_prices(path: pathlib.Path = PRICES) -> ListPrices:
    """Return the list prices by VM size and location; raise InvalidFileError with the first problem of the file."""
    try:
        content = PriceFile.model_validate_json(path.read_bytes())
    except OSError as error:
        remedy = REMEDY if path == PRICES else GIVE_FILE
        raise _invalid(path, (), None, f"cannot be read: {error.strerror or error}", remedy) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _invalid(path, first["loc"], shown(first["input"]), f"{shown(first['input'])} is invalid: {first['msg']}") from None
    prices: dict[tuple[str, str], ListPrice] = {}
    for number, snapshot in enumerate(content.snapshots):
        for size, by_location in snapshot.usd_per_hour.items():
            for location, price in by_location.items():
                if (size, location) in prices:
                    reason = f"{price} is a second price; another snapshot has one already"
                    raise _invalid(path, ("snapshots", number, "usd_per_hour", size, location), str(price), reason)
                prices[size, location] = ListPrice(price, snapshot.date.isoformat(), snapshot.source)
    return prices


def _invalid(path: pathlib.Path, where: tuple[str | int, ...], value: str | None, reason: str, remedy: str = REMEDY) -> InvalidFileError:
    return invalid_file([problem(str(path), where, None, value, reason, remedy)])


def replace_prices(old: ListPrices, received: Mapping[tuple[str, str], Decimal], day: str, source: str) -> ListPrices:
    """Return the prices with the received ones in place of the old; an old price without a new one stays, with its date and source."""
    return {**old, **{key: ListPrice(price, day, source) for key, price in received.items()}}


def prices_text(prices: ListPrices) -> str:
    """Return the text of the file: the latest snapshot first, sizes in the order of the table of VM sizes, locations sorted."""
    order = {size: number for number, size in enumerate(VM_SIZES)}
    snapshots: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for (size, location), price in sorted(prices.items(), key=lambda item: (order.get(item[0][0], len(order)), item[0])):
        by_size = snapshots.setdefault((price.date, price.source), {})
        by_size.setdefault(size, {})[location] = f"{price.usd_per_hour.normalize():f}"
    entries = [
        {"date": day, "source": source, "usd_per_hour": by_size} for (day, source), by_size in sorted(snapshots.items(), reverse=True)
    ]
    return json.dumps({"snapshots": entries}, indent=1) + "\n"


def write_prices(path: pathlib.Path, prices: ListPrices) -> None:
    """Write the file atomically: a reader sees the old prices or the new ones; raise OSError."""
    write_atomically(path, prices_text(prices))
