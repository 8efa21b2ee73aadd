"""Region file model of a cluster's tenancy, rotation policy and observability."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, field_validator

from components.spec.pool import NODES_PER_CLUSTER, PriorityClass
from components.spec.types import Model, PoolName, TeamName, TimeOfDay, Uuid


class Team(Model):
    """One team that may use the cluster."""

    name: TeamName
    """Name of the team, of its namespace and the value of its taint."""
    group: Uuid
    """Object id of the team's group in Entra ID; its members have the team's rights."""
    egress_gib_per_day: Annotated[int, Field(ge=1, le=1_000_000_000)] = 10_000
    """GiB that the team's pods may send to the internet in 24 hours before an alert fires; traffic is not stopped. The default is the
    amount that one machine sends at 1 Gbit/s."""


class Allocation(Model):
    """Machines of a pool that are allocated to a team."""

    team: TeamName
    """Name of a team in tenancy.teams."""
    pool: PoolName
    """Name of a pool of the same cluster."""
    nodes: Annotated[int, Field(ge=1, le=NODES_PER_CLUSTER)]
    """Number of machines."""


class Tenancy(Model):
    """Teams of a cluster and their allocations."""

    teams: tuple[Team, ...] = Field(min_length=1, max_length=200)
    """Teams of the cluster."""
    allocations: tuple[Allocation, ...] = Field(default=(), max_length=1_000)
    """Allocations; their sum per pool is at most the pool's number of machines."""


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
    """Recurring time in which rotation may start on nodes."""

    days: tuple[Day, ...] = Field(min_length=1, max_length=7)
    """Days on which the window opens, UTC."""
    opens: TimeOfDay
    """Time at which the window opens, UTC, quoted: "22:00"."""
    hours: Annotated[int, Field(ge=1, le=24)]
    """Length of the window in hours."""

    @field_validator("days")
    @classmethod
    def each_day_once(cls, value: tuple[Day, ...]) -> tuple[Day, ...]:
        """Reject a repeated day."""
        twice = [day.value for day in value if value.count(day) > 1]
        if twice:
            raise ValueError(f"lists {twice[0]} twice; list each day once")
        return value


class Budget(Model):
    """Machines that may be unavailable at the same time, for any reason."""

    percent: Annotated[int, Field(ge=1, le=50)]
    """Maximum share of the cluster's machines, in percent."""
    machines: Annotated[int, Field(ge=1, le=NODES_PER_CLUSTER)]
    """Maximum number of machines of the cluster; the smaller of the two bounds applies."""
    per_scale_set: Annotated[int, Field(ge=1, le=1_000)]
    """Maximum number of machines of one scale set."""


class Replacement(StrEnum):
    """Method by which a drained node gets its new image."""

    REIMAGE = "reimage"
    REPLACE = "replace"


class Rotation(Model):
    """Policy for draining and replacing nodes."""

    budget: Budget
    """Machines that may be unavailable at the same time."""
    windows: tuple[Window, ...] = Field(default=(), max_length=21)
    """Times in which rotation may start on nodes; an empty list means always."""
    deadline_minutes: dict[PriorityClass, Annotated[int, Field(ge=0, le=10_080)]] = Field(
        json_schema_extra={"required": [priority.value for priority in PriorityClass]}
    )
    """Minutes between the checkpoint signal and the eviction of a job, for each priority class; at most seven days."""
    how: Replacement = Replacement.REIMAGE
    """reimage: the machine keeps its addresses. replace: the new machine can be on other hardware."""
    azure_calls_per_minute: Annotated[int, Field(ge=1, le=10_000)] = 120
    """Instance operations (reimage, delete, update) that rotation sends to Azure per minute."""

    @field_validator("deadline_minutes")
    @classmethod
    def each_class_has_a_deadline(cls, value: dict[PriorityClass, int]) -> dict[PriorityClass, int]:
        """Require a deadline for each priority class, since any workload may have any class."""
        missing = [priority.value for priority in PriorityClass if priority not in value]
        if missing:
            raise ValueError(f"has no {', '.join(missing)}; write minutes from 0 to 10080 for each of {', '.join(PriorityClass)}")
        return value


class Observability(Model):
    """Settings of metrics."""

    gpu_metrics_seconds: Annotated[int, Field(ge=1, le=300)] = 30
    """Seconds between two readings of the GPU metrics of a machine."""
