"""Sentences about the cost of machines."""

from __future__ import annotations

from decimal import Decimal

from components.plan.cost import HOURS_PER_MONTH, CostTotal, Unpriced

INCLUDED = (
    "virtual machines only, Linux, pay-as-you-go; not disks, traffic, load balancers, gateways, reservations or savings plans; "
    "spot machines at the pay-as-you-go price"
)
"""What a total contains."""


def dollars(value: Decimal) -> str:
    """Return US dollars and cents."""
    return f"{value:,.2f}"


def machine_count(count: int) -> str:
    """Return a number of machines in words."""
    return f"{count:,} machine{'' if count == 1 else 's'}"


def price_basis(cost: CostTotal) -> str:
    """Return the dates of the list prices, and the number of machines with a negotiated price."""
    listed = cost.priced - cost.negotiated
    parts = [f"list prices of {' to '.join(dict.fromkeys((cost.dates[0], cost.dates[-1])))}"] if listed else []
    parts += [f"negotiated prices for {machine_count(cost.negotiated)}"] if cost.negotiated else []
    return " and ".join(parts) or "no price applies"


def unpriced_text(cost: CostTotal) -> str:
    """Return the sizes without price, with locations and numbers of machines; empty where every machine has a price."""
    return f"without price: {'; '.join(f'{_place(one)}, {machine_count(one.machines)}' for one in cost.unpriced)}" if cost.unpriced else ""


def cost_text(cost: CostTotal) -> str:
    """Return a total in one line: per hour, per month and per GPU-hour, the basis, and the machines without price."""
    least = "at least " if cost.unpriced else ""
    amounts = [f"{least}{dollars(cost.usd_per_hour)} US$ per hour", f"{least}{dollars(cost.usd_per_month)} per month ({HOURS_PER_MONTH} h)"]
    if cost.usd_per_gpu_hour is not None:
        amounts.append(f"{dollars(cost.usd_per_gpu_hour)} per GPU-hour")
    return "; ".join(part for part in (", ".join(amounts), f"virtual machines at {price_basis(cost)}", unpriced_text(cost)) if part)


def cost_change_text(before: CostTotal, after: CostTotal) -> str:
    """Return the difference between two totals in one line; empty where neither the cost nor the machines without price differ."""
    if (before.usd_per_hour, before.unpriced) == (after.usd_per_hour, after.unpriced):
        return ""
    change = after.usd_per_hour - before.usd_per_hour
    missing = unpriced_text(after) if before.unpriced == after.unpriced else f"without price: {_listed(before)} -> {_listed(after)}"
    return "; ".join(
        part
        for part in (
            f"{dollars(before.usd_per_hour)} -> {dollars(after.usd_per_hour)} US$ per hour ({'+' if change >= 0 else ''}{dollars(change)})",
            f"virtual machines at {price_basis(after if after.priced else before)}",
            missing,
        )
        if part
    )


def _listed(cost: CostTotal) -> str:
    """Return the sizes without price for a comparison, or none."""
    return ", ".join(f"{_place(one)} ({machine_count(one.machines)})" for one in cost.unpriced) or "none"


def _place(unpriced: Unpriced) -> str:
    """Return a size and its location."""
    return f"{unpriced.size} in {unpriced.location}"
