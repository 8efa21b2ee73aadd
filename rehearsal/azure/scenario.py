"""Scenarios: how long operations of an embedded Azure take, what quota is granted, and which faults occur, when and how often."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field, model_validator

from components.plan.invalid_value import nearest
from components.plan.vm_sizes import VM_SIZES
from components.spec.types import AzureLocation, Model, Uuid, VmSizeName, form
from rehearsal.azure.api_versions import API_VERSIONS
from rehearsal.azure.durations import DEFAULTS, Duration, OperationName, TimeSpan, span_seconds

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

SERVICES = tuple(sorted({name.partition("/")[0] for name in API_VERSIONS}))


def _among(known: tuple[str, ...], what: str, text: str) -> str:
    if text.lower() not in {one.lower() for one in known}:
        raise ValueError(f"is not a {what} of the model; {nearest(text, known)}")
    return text


def known_size(text: str) -> str:
    """Accept a VM size of the model, in any case."""
    return _among(tuple(VM_SIZES), "VM size", text)


def known_service(text: str) -> str:
    """Accept a resource provider of the model, in any case."""
    return _among(SERVICES, "resource provider", text)


Family = Annotated[str, form(r"^[a-zA-Z0-9_]{3,60}$", "a VM family as `az vm list-usage` names it: standardNDSH100v5Family")]
KnownVmSize = Annotated[VmSizeName, AfterValidator(known_size)]
Provider = Annotated[
    str, form(r"^Microsoft\.[A-Za-z]{2,40}$", "a resource provider as Azure names it: Microsoft.Compute"), AfterValidator(known_service)
]


Share = Annotated[float, Field(ge=0, le=1)]
PerDay = Annotated[float, Field(ge=0, le=1_000)]
Zone = Literal["1", "2", "3"]


class MachineFilter(Model):
    """Which machines a row is about: all, or those of a VM size."""

    vm_size: KnownVmSize | None = None
    """VM size that is meant; every size without one."""

    def takes(self, size: str) -> bool:
        """Return whether the row applies to a size, in any case."""
        return self.vm_size is None or self.vm_size.lower() == size.lower()


class TimeInterval(Model):
    """A time from one moment until another."""

    starts: TimeSpan = "0s"
    """Span from the scenario's start after which this begins."""
    ends: TimeSpan | None = None
    """Span from the scenario's start at which this ends; without one it lasts."""

    @model_validator(mode="after")
    def _in_order(self) -> TimeInterval:
        if self.ends is not None and span_seconds(self.ends) <= span_seconds(self.starts):
            raise ValueError(f"ends at {self.ends}, not after it starts at {self.starts}; give a later end")
        return self

    def holds(self, elapsed: float) -> bool:
        """Return whether a time, in seconds from the scenario's start, is in the interval; its end is not."""
        return span_seconds(self.starts) <= elapsed and (self.ends is None or elapsed < span_seconds(self.ends))


class AllocationFailure(MachineFilter, TimeInterval):
    """Machines for which Azure finds no hardware: a share of the attempts, and all of them where the rate is 1."""

    rate: Share
    """Share of the attempts to place a machine that fail."""
    zone: Zone | None = None
    """Availability zone that is meant; every zone, and machines without one, where none is named."""
    location: AzureLocation | None = None
    """Azure location that is meant; every location without one."""
    spot: bool | None = None
    """True means spot machines alone, false regular ones alone; without it both are meant."""


class Grant(Model):
    """vCPUs that Azure grants."""

    family: Family
    """VM family as `az vm list-usage` names it; `cores` is the total of a location, `lowPriorityCores` all spot machines."""
    vcpus: Annotated[int, Field(ge=0, le=100_000_000)]
    """Granted vCPUs."""
    subscription: Uuid | None = None
    """Subscription of the grant; each that exists without one."""
    location: AzureLocation | None = None
    """Azure location of the grant; each without one."""


class Shortage(Model):
    """A grant that falls short of what the region file asks for."""

    machines: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Machines of the family's largest size that no quota is left for."""
    family: Family | None = None
    """VM family, or `lowPriorityCores`; without one that of which the region uses the most vCPUs."""


class Quotas(Model):
    """What Azure has granted; what is not named here is as the region file's quotas say, and without bound where they say nothing."""

    granted: tuple[Grant, ...] = Field(default=(), max_length=500)
    """Grants that hold instead of those of the region file."""
    short: tuple[Shortage, ...] = Field(default=(), max_length=20)
    """Grants that are made to fall short of the region file's needs."""


class SlowProvisioning(MachineFilter):
    """Machines that take longer to be made."""

    rate: Share
    """Share of the machines."""
    factor: Annotated[float, Field(ge=1, le=100)]
    """How many times as long they take."""


class FailedProvisioning(MachineFilter):
    """Machines whose making ends in an error."""

    rate: Share
    """Share of the attempts."""
    code: Literal["OSProvisioningTimedOut", "OSProvisioningInternalError", "VMExtensionProvisioningError", "InternalExecutionError"]
    """Azure's error code."""


class BadHosts(MachineFilter):
    """Hosts with a fault that Azure does not notice: only a check on the machine finds it, and only other hardware cures it."""

    share: Share
    """Share of the hosts."""
    fault: Literal["gpu", "infiniband", "nvme", "nvlink"] = "gpu"
    """What is broken."""


class Maintenance(MachineFilter):
    """A maintenance of hosts that Azure announces."""

    at: TimeSpan
    """Span from the scenario's start at which it is announced."""
    share: Share
    """Share of the instances that it meets."""
    kind: Literal["Freeze", "Reboot", "Redeploy"] = "Freeze"
    """What happens to them: a pause of seconds, a restart, or a move to another host that wipes local disks."""
    notice: TimeSpan = "15m"
    """Time between the announcement and the earliest moment at which it happens."""
    location: AzureLocation | None = None
    """Azure location that is meant; every location without one."""


class HostFailures(MachineFilter):
    """Hosts that break without notice; Azure moves the machine to another one."""

    per_instance_day: PerDay
    """Failures per instance and day."""


class EvictionBurst(MachineFilter):
    """Spot machines that are taken back all at once."""

    at: TimeSpan
    """Span from the scenario's start."""
    share: Share
    """Share of the spot instances."""
    location: AzureLocation | None = None
    """Azure location that is meant; every location without one."""


class Evictions(MachineFilter):
    """Spot machines that are taken back one by one."""

    per_instance_day: PerDay
    """Evictions per spot instance and day."""


class Outage(TimeInterval):
    """A time in which requests are answered with an error."""

    services: tuple[Provider, ...] = Field(default=(), max_length=20)
    """Resource providers that fail, such as Microsoft.Compute; all without any."""
    status: Literal[500, 503] = 503
    """HTTP status of the answers."""
    rate: Share = 1.0
    """Share of the requests that fail."""
    location: AzureLocation | None = None
    """Azure location that is meant; every location without one."""


class Throttling(Model):
    """Whether Azure's published call rates are enforced, and how many times as high as published they are."""

    enabled: bool = True
    """False lets every call through."""
    compute: Annotated[float, Field(gt=0, le=1_000)] = 1.0
    """Factor on the token buckets of Microsoft.Compute, both refill and capacity."""
    network: Annotated[float, Field(gt=0, le=1_000)] = 1.0
    """Factor on the calls per five minutes of Microsoft.Network."""
    arm: Annotated[float, Field(gt=0, le=1_000)] = 1.0
    """Factor on the token buckets of Azure Resource Manager itself, both refill and capacity."""


class Scenario(Model):
    """One scenario file: everything that an embedded Azure does of itself. An empty one is an Azure in which nothing goes wrong."""

    seed: Annotated[int, Field(ge=0, le=2**53)] = 0
    """What every draw depends on: the same seed and the same requests give the same history."""
    durations: Mapping[OperationName, Duration] = Field(default_factory=dict)
    """How long operations take; what is not named takes its default."""
    duration_factor: Annotated[float, Field(ge=0, le=100)] = 1.0
    """Factor on every duration; 0 does everything at once."""
    quotas: Quotas = Quotas()
    """vCPUs that are granted."""
    allocation_failures: tuple[AllocationFailure, ...] = Field(default=(), max_length=100)
    """Machines for which there is no hardware. Where several rows meet a machine, any of them may fail it."""
    slow_provisioning: tuple[SlowProvisioning, ...] = Field(default=(), max_length=100)
    """Machines that take longer to be made."""
    failed_provisioning: tuple[FailedProvisioning, ...] = Field(default=(), max_length=100)
    """Machines whose making ends in an error."""
    spare_hosts: Annotated[float, Field(ge=0, le=10)] = 0.05
    """Free hosts of a VM size in a zone, as a share of those that were in use at most: a machine that is deleted and made anew lands on
    any of them or on its old host, each as likely. No figure is published."""
    bad_hosts: tuple[BadHosts, ...] = Field(default=(), max_length=100)
    """Hosts with a fault that only a check on the machine finds."""
    maintenance: tuple[Maintenance, ...] = Field(default=(), max_length=100)
    """Maintenance that Azure announces."""
    host_failures: tuple[HostFailures, ...] = Field(default=(), max_length=100)
    """Hosts that break without notice."""
    evictions: tuple[Evictions, ...] = Field(default=(), max_length=100)
    """Spot machines that are taken back one by one."""
    eviction_bursts: tuple[EvictionBurst, ...] = Field(default=(), max_length=100)
    """Spot machines that are taken back all at once."""
    outages: tuple[Outage, ...] = Field(default=(), max_length=100)
    """Times in which requests are answered with an error."""
    concurrent_requests: Share = 0.0
    """Share of the requests for instances that Azure refuses with Conflict while it works on other instances of the same scale set."""
    throttling: Throttling = Throttling()
    """Azure's call rates."""


@dataclass(slots=True)
class ActiveScenario:
    """Active scenario and its start in seconds since 1970."""

    scenario: Scenario
    began: float

    def dump(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"scenario": self.scenario.model_dump(mode="json"), "began": self.began}

    def load(self, data: dict[str, Any]) -> None:
        """Restore the state that dump returned."""
        self.scenario, self.began = Scenario.model_validate_json(json.dumps(data["scenario"])), data["began"]


NOTHING_WRONG = Scenario()


def begin_scenario(cloud: Cloud, scenario: Scenario) -> None:
    """Activate a scenario from now on, and plan its faults if the model has the service for them."""
    cloud.services["scenario"] = ActiveScenario(scenario, cloud.now)
    happenings = cloud.services.get("happenings")
    if happenings is not None:
        happenings.begin(cloud)


def scenario_of(cloud: Cloud) -> Scenario:
    """Return the active scenario; without one, a scenario without faults."""
    force: ActiveScenario | None = cloud.services.get("scenario")
    return force.scenario if force is not None else NOTHING_WRONG


def elapsed(cloud: Cloud) -> float:
    """Return the seconds since the active scenario started; without one, since the model's start."""
    force: ActiveScenario | None = cloud.services.get("scenario")
    return cloud.now - (force.began if force is not None else cloud.events.start)


_NORMAL = NormalDist()
_LEAST = 2.0**-57
"""Half of the smallest step of a draw: a draw of 0 would lie infinitely far out."""


def operation_seconds(cloud: Cloud, what: str, *drawn_for: object) -> float:
    """Return the seconds of an operation in the active scenario. Raises KeyError for an operation without a duration.

    drawn_for identifies the operation (a key, a version, an attempt): the same arguments give the same seconds in every run of a seed.
    """
    scenario = scenario_of(cloud)
    duration = duration_of(scenario.durations.get(cast("OperationName", what)), what)
    median = duration.median_seconds * scenario.duration_factor
    if duration.sigma == 0 or median == 0:
        return median
    drawn = max(cloud.draw("duration", what, *drawn_for), _LEAST)
    return median * math.exp(duration.sigma * _NORMAL.inv_cdf(drawn))


def duration_of(named: Duration | None, what: str) -> Duration:
    """Return a scenario's duration, or the default."""
    return named if named is not None else DEFAULTS[cast("OperationName", what)]
