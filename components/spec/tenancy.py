"""Region file model of a cluster's tenancy, rotation policy and observability."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from components.spec.pool import NODES_PER_CLUSTER, PriorityClass
from components.spec.types import Date, Model, PoolName, TeamName, TimeOfDay, TimeZone, Uuid


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
    """Day of the week, in rotation.time_zone."""

    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"
    SUN = "sun"


class Window(Model):
    """Recurring time in which rotation may start on machines; work that has started continues after the window closes.

    A window may cross midnight: it belongs to the day on which it opens, and the next day need not be in `days`. Its length is in elapsed
    hours, also on the days of the change between winter and summer time. A local time that occurs twice on such a day is the first of the
    two. A local time that the change skips means the same moment as in the offset before the change: 02:30 then opens at 03:30.
    """

    days: tuple[Day, ...] = Field(min_length=1, max_length=7)
    """Days on which the window opens, in rotation.time_zone."""
    opens: TimeOfDay
    """Time at which the window opens, in rotation.time_zone, quoted: "22:00"."""
    hours: Annotated[int, Field(ge=1, le=24)]
    """Length of the window in elapsed hours."""

    @field_validator("days")
    @classmethod
    def each_day_once(cls, value: tuple[Day, ...]) -> tuple[Day, ...]:
        """Reject a repeated day."""
        twice = [day.value for day in value if value.count(day) > 1]
        if twice:
            raise ValueError(f"lists {twice[0]} twice; list each day once")
        return value


class Freeze(Model):
    """Days on which rotation starts on no machine, also in a window that opened on the day before.

    A day lasts from midnight to midnight in rotation.time_zone, so it has 23 or 25 hours when the clocks change.
    """

    first: Date
    """First day, in rotation.time_zone, quoted: "2026-12-19"."""
    last: Date
    """Last day, included, in rotation.time_zone, quoted: "2027-01-03"."""
    reason: Annotated[str, Field(min_length=1, max_length=200)]
    """Reason, as rotation reports it, for example: holidays."""

    @field_validator("last")
    @classmethod
    def ends_after_it_begins(cls, value: date, info: ValidationInfo) -> date:
        """Require a last day that is not before the first."""
        first = info.data.get("first")
        if first is not None and value < first:
            raise ValueError(f"is before first, {first}; write {first} or a later day, or correct first")
        return value


class Budget(Model):
    """Machines that may be unavailable at the same time, for any reason.

    All bounds apply together. A share is rounded down, but is at least one machine.
    """

    percent: Annotated[int, Field(ge=1, le=50)]
    """Maximum share of the cluster's machines, in percent."""
    machines: Annotated[int, Field(ge=1, le=NODES_PER_CLUSTER)]
    """Maximum number of machines of the cluster; the smaller of the two bounds applies."""
    per_scale_set: Annotated[int, Field(ge=1, le=1_000)]
    """Maximum number of unavailable machines of one scale set, for starts of machines without a gang."""
    scale_sets_at_once: Annotated[int, Field(ge=1, le=1_000)] = 1
    """Scale sets (InfiniBand domains) that may have more than per_scale_set machines unavailable at the same time, because a whole gang is
    drained together."""
    per_pool_percent: Annotated[int, Field(ge=1, le=100)] | None = None
    """Maximum share of the machines of each pool, in percent; without it only the cluster's bounds apply."""
    per_team_percent: Annotated[int, Field(ge=1, le=100)] | None = None
    """Maximum share of the machines of each allocation (a team's machines in a pool), in percent; without it only the other bounds
    apply."""


class Replacement(StrEnum):
    """Method by which a drained node gets its new image."""

    REIMAGE = "reimage"
    REPLACE = "replace"


class StartMode(StrEnum):
    """Machines on which rotation may start."""

    NOW = "now"
    WHEN_IDLE = "when-idle"


class Growth(Model):
    """Growth of the number of machines of a pool in rotation, after its canaries are ready."""

    first: Annotated[int, Field(ge=1, le=1_000)] = 16
    """Machines of a pool that may be in rotation after its canaries, before the next verdict. The budget bounds the number too."""
    factor: Annotated[int, Field(ge=2, le=10)] = 4
    """Growth of the number: each good verdict adds factor - 1 machines."""


class Stop(Model):
    """Share of failures that stops a run; a stopped run can be continued."""

    failed_percent: Annotated[int, Field(ge=1, le=100)] = 20
    """Percent of the latest verdicts: more failures than this stop the run."""
    of_last: Annotated[int, Field(ge=10, le=1_000)] = 50
    """Number of latest verdicts that are counted."""


class Rotation(Model):
    """Policy for draining and replacing nodes."""

    budget: Budget
    """Machines that may be unavailable at the same time."""
    windows: tuple[Window, ...] = Field(default=(), max_length=21)
    """Times in which rotation may start on machines; an empty list means always."""
    time_zone: TimeZone = "UTC"
    """Time zone of the windows' days and times, of the freezes and of the calendar day, for example America/Chicago."""
    freeze: tuple[Freeze, ...] = Field(default=(), max_length=50)
    """Days on which rotation starts on no machine."""
    deadline_minutes: dict[PriorityClass, Annotated[int, Field(ge=0, le=10_080)]] = Field(
        json_schema_extra={"required": [priority.value for priority in PriorityClass]}
    )
    """Minutes between the checkpoint signal and the eviction of a job, for each priority class; at most seven days."""
    mode: StartMode = StartMode.NOW
    """now: rotation may start on machines with jobs, and drains them. when-idle: until when_idle_until, it starts only on machines without
    a job of normal or high priority."""
    when_idle_until: Date | None = None
    """Day in rotation.time_zone, quoted, from whose beginning rotation also drains machines with jobs; required with mode: when-idle."""
    how: Replacement = Replacement.REIMAGE
    """reimage: the machine keeps its addresses. replace: the new machine can be on other hardware."""
    starts_per_minute: Annotated[int, Field(ge=1, le=10_000)] = 120
    """Machines on which rotation may start per minute."""
    share_per_day_percent: Annotated[int, Field(ge=1, le=100)] = 100
    """Maximum share of the cluster's machines on which rotation may start on one calendar day of rotation.time_zone, in percent."""
    azure_calls_per_minute: Annotated[int, Field(ge=1, le=10_000)] = 120
    """Instance operations (reimage, delete, update) that rotation sends to Azure per minute."""
    canary_machines: Annotated[int, Field(ge=1, le=10)] = 1
    """Machines of each pool and image that must be ready before rotation starts on others of the pool."""
    growth: Growth = Growth()
    """Growth of the number of machines in rotation, after the canaries."""
    stop: Stop = Stop()
    """Share of failures that stops a run."""
    attempts: Annotated[int, Field(ge=1, le=5)] = 3
    """Attempts to rotate one machine, the first included; then it has failed."""
    give_up_after_days: Annotated[int, Field(ge=1, le=60)] = 14
    """Days after the beginning of a run; machines that are then still pending are blocked."""

    @field_validator("deadline_minutes")
    @classmethod
    def each_class_has_a_deadline(cls, value: dict[PriorityClass, int]) -> dict[PriorityClass, int]:
        """Require a deadline for each priority class, since any workload may have any class."""
        missing = [priority.value for priority in PriorityClass if priority not in value]
        if missing:
            raise ValueError(f"has no {', '.join(missing)}; write minutes from 0 to 10080 for each of {', '.join(PriorityClass)}")
        return value

    @field_validator("when_idle_until")
    @classmethod
    def date_matches_mode(cls, value: date | None, info: ValidationInfo) -> date | None:
        """Require a date exactly if the mode is when-idle."""
        mode = info.data.get("mode")
        if mode is StartMode.WHEN_IDLE and value is None:
            reason = "is missing, and mode: when-idle needs it, or machines with long jobs would never be rotated"
            raise PydanticCustomError("idle_date", f"{reason}; add the day from which jobs are drained, or write mode: now")
        if mode is StartMode.NOW and value is not None:
            raise PydanticCustomError("idle_date", "mode: now ignores it; write mode: when-idle, or leave when_idle_until out")
        return value


class Observability(Model):
    """Settings of metrics."""

    gpu_metrics_seconds: Annotated[int, Field(ge=1, le=300)] = 30
    """Seconds between two readings of the GPU metrics of a machine."""
