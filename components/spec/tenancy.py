"""What a person writes about a cluster's tenants, its rotation policy and its observability."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from components.spec.pool import NODES_PER_CLUSTER, PriorityClass
from components.spec.types import Model, PoolName, TeamName, TimeOfDay, Uuid


class Team(Model):
    """One team that may use the cluster."""

    name: TeamName
    """Name of the team: its namespace, its taint's value."""
    group: Uuid
    """Object id of the team's group in Entra ID; its members act for the team."""
    egress_gib_per_day: Annotated[int, Field(ge=1, le=1_000_000_000)] = 10_000
    """GiB that the team's pods may send to the internet in 24 hours before somebody is told; nothing is stopped. The default is what one
    machine sends at 1 Gbit/s."""


class Allocation(Model):
    """Machines of a pool that a team has first claim on."""

    team: TeamName
    """A team of tenancy.teams."""
    pool: PoolName
    """A pool of the same cluster."""
    nodes: Annotated[int, Field(ge=1, le=NODES_PER_CLUSTER)]
    """Machines allocated."""


class Tenancy(Model):
    """Who uses the cluster."""

    teams: tuple[Team, ...] = Field(min_length=1, max_length=200)
    """Teams of the cluster."""
    allocations: tuple[Allocation, ...] = Field(default=(), max_length=1_000)
    """Allocations, at most the pool's machines in all."""


class Day(StrEnum):
    """Day of the week, UTC."""

    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"
    SUN = "sun"


class Window(Model):
    """A time in which rotation may start nodes."""

    days: tuple[Day, ...] = Field(min_length=1, max_length=7)
    """Days on which the window opens, UTC."""
    opens: TimeOfDay
    """Time at which it opens, UTC, quoted: "22:00"."""
    hours: Annotated[int, Field(ge=1, le=24)]
    """Hours for which it stays open."""

    @model_validator(mode="after")
    def each_day_once(self) -> Self:
        """Demand that no day is named twice, which would say nothing more."""
        twice = [day.value for day in self.days if self.days.count(day) > 1]
        if twice:
            raise ValueError(f"days names {twice[0]} twice; name each day once")
        return self


class Budget(Model):
    """Machines that may be unavailable at once, whoever made them so."""

    percent: Annotated[int, Field(ge=1, le=50)]
    """Share of the cluster's machines, in percent."""
    machines: Annotated[int, Field(ge=1, le=NODES_PER_CLUSTER)]
    """Machines of the cluster; the smaller of the two bounds holds."""
    per_scale_set: Annotated[int, Field(ge=1, le=1_000)]
    """Machines of one scale set."""


class Replacement(StrEnum):
    """How a drained node gets its new image."""

    REIMAGE = "reimage"
    REPLACE = "replace"


class Rotation(Model):
    """How nodes are drained, replaced and put back."""

    budget: Budget
    """How many machines may be out at once."""
    windows: tuple[Window, ...] = Field(default=(), max_length=21)
    """When nodes may be started; none means always."""
    deadline_minutes: dict[PriorityClass, Annotated[int, Field(ge=0, le=10_080)]]
    """Minutes that a job of each priority class has to save its work before eviction; at most seven days."""
    how: Replacement = Replacement.REIMAGE
    """reimage keeps the machine and its addresses; replace may land on other hardware."""
    azure_calls_per_minute: Annotated[int, Field(ge=1, le=10_000)] = 120
    """Instance operations (reimage, delete, update) that rotation sends to Azure per minute."""


class Observability(Model):
    """What is measured, and how often."""

    gpu_metrics_seconds: Annotated[int, Field(ge=1, le=300)] = 30
    """Seconds between two readings of a machine's GPU metrics."""
