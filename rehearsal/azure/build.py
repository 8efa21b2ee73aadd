"""Decides which resource types the embedded Azure has."""

from __future__ import annotations

from collections.abc import Iterable

from rehearsal.azure import groups
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.kind import Kind

KINDS: tuple[Kind, ...] = (*groups.KINDS,)


def build(subscriptions: Iterable[str], tenant: str, *, seed: int = 0) -> Cloud:
    """An empty Azure of some subscriptions of one tenant."""
    return Cloud(KINDS, subscriptions=subscriptions, tenant=tenant, seed=seed)
