"""Scheduled events: announcements to machines, which start on approval or at their announced time.

https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Literal, cast

from components.plan.vm_sizes import VM_SIZES
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

SERVICE = "scheduled_events"
EventType = Literal["Terminate", "Preempt", "Reboot", "Redeploy", "Freeze"]
SCHEDULED, STARTED = "Scheduled", "Started"
LISTED_AFTER_START = 600.0
"""Approximate seconds for which a started event stays in the document without an end: the published timeline."""
FREEZE = 9
"""DurationInSeconds of a freeze, from the documentation's example; other types have -1, unknown."""
_DESCRIPTIONS = {
    "Terminate": "Virtual machine is going to be deleted as requested by authorized user.",
    "Preempt": "Spot virtual machine is going to be evicted.",
    "Reboot": "Host server is undergoing maintenance.",
    "Redeploy": "Host server is undergoing an emergency repair.",
    "Freeze": "Virtual machine is being paused because of a memory-preserving Live Migration operation.",
}
_GPU_SIZES = frozenset(name.lower() for name, size in VM_SIZES.items() if size.gpus)


@dataclass(slots=True)
class Notice:
    """One scheduled event of a scale set: key is the set's, instances are ids in it, not_before is in seconds since 1970."""

    id: str
    key: str
    instances: list[str]
    event_type: EventType
    not_before: float
    source: str
    status: str = SCHEDULED
    approved: bool = False


class ScheduledEvents:
    """Announced events by id, in creation order, until they end."""

    def __init__(self) -> None:
        self._notices: dict[str, Notice] = {}
        self._of_set: dict[str, dict[str, Notice]] = {}
        self._incarnations: Counter[str] = Counter()
        self._made = 0

    def announce(self, cloud: Cloud, *, key: str, instances: Iterable[str], event_type: EventType, not_before: float) -> str:
        """Tell instances of a scale set what will happen to them, not before a moment: the event's id.

        When it is approved, or the moment has come, the scale set's kind is given the event "scheduled_event" with the id, the type, the
        list of instance ids and "approved" or "timeout". A moment that is past starts it at once, as a hardware failure does.
        """
        self._made += 1
        source = "User" if event_type == "Terminate" else "Platform"
        notice = Notice(cloud.stable_uuid(SERVICE, cloud.seed, self._made), key, list(instances), event_type, not_before, source)
        self._keep(notice)
        self._incarnations[key] += 1
        if not_before <= cloud.now:
            self._start(cloud, notice, "timeout")
        else:
            cloud.events.at(not_before, SERVICE, "due", notice.id)
        return notice.id

    def approve(self, cloud: Cloud, event_id: str) -> None:
        """Approve an event before its time, as a StartRequests entry does. Raises AzureError for an unknown event.

        An approved delete waits until its scale set has no other pending delete without approval. Each delete then follows its own approval
        or timeout. https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-terminate-notification
        """
        notice = self._notices.get(event_id.lower())
        if notice is None:
            raise AzureError(400, "BadRequest", f"There is no scheduled event '{event_id}'; read the document again.", target="EventId")
        if notice.status == STARTED or notice.approved:
            return
        notice.approved = True
        if notice.event_type == "Terminate":
            self._start_approved_deletes(cloud, notice.key)
        else:
            self._start(cloud, notice, "approved")

    def finish(self, event_id: str) -> None:
        """Remove an event that has ended or will not occur; an unknown id has already ended."""
        notice = self._notices.pop(event_id, None)
        if notice is not None:
            del self._of_set[notice.key][event_id]
            self._incarnations[notice.key] += 1

    def withdraw(self, cloud: Cloud, key: str, instances: Iterable[str]) -> None:
        """Remove instances that no longer exist from all events; events without instances end."""
        gone = set(instances)
        for notice in [one for one in self._of(key) if gone.intersection(one.instances)]:
            notice.instances = [one for one in notice.instances if one not in gone]
            self._incarnations[key] += 1
            if not notice.instances:
                self.finish(notice.id)
        self._start_approved_deletes(cloud, key)

    def forget(self, key: str) -> None:
        """Remove all events of a deleted scale set."""
        for event_id in self._of_set.pop(key, {}):
            del self._notices[event_id]
        self._incarnations.pop(key, None)

    def pending(self, key: str) -> tuple[Notice, ...]:
        """Return the events of a scale set that have not started."""
        return tuple(notice for notice in self._of(key) if notice.status == SCHEDULED)

    def document(self, cloud: Cloud, key: str, instance_id: str) -> Json:
        """Return the metadata service's document for an instance (API version 2020-07-01).

        An instance sees all events of its set, which counts as one placement group. GPU machines in sets with one fault domain see only
        their own.
        """
        resource = cloud.resources[key]
        alone = resource.properties.get("platformFaultDomainCount") == 1 and _size(resource.body) in _GPU_SIZES
        seen = (one for one in self._of(key) if not alone or instance_id in one.instances)
        return {"DocumentIncarnation": 1 + self._incarnations[key], "Events": [_told(resource.id.name, notice) for notice in seen]}

    def event(self, cloud: Cloud, name: str, args: tuple[Any, ...]) -> None:
        """Handle a planned time: "due" of an unapproved event, "over" of a started one."""
        notice = self._notices.get(args[0])
        if notice is None:
            return
        if name == "over":
            self.finish(notice.id)
        elif notice.status == SCHEDULED:
            self._start(cloud, notice, "timeout")
            self._start_approved_deletes(cloud, notice.key)

    def dump(self) -> dict[str, Any]:
        """Return the announced events as plain JSON."""
        return {"made": self._made, "incarnations": dict(self._incarnations), "notices": [asdict(one) for one in self._notices.values()]}

    def load(self, data: dict[str, Any]) -> None:
        """Restore the state that dump returned."""
        self._made, self._incarnations = data["made"], Counter(data["incarnations"])
        self._notices, self._of_set = {}, {}
        for item in data["notices"]:
            self._keep(Notice(**item))

    def _keep(self, notice: Notice) -> None:
        self._notices[notice.id] = self._of_set.setdefault(notice.key, {})[notice.id] = notice

    def _of(self, key: str) -> Iterable[Notice]:
        return self._of_set.get(key, {}).values()

    def _start_approved_deletes(self, cloud: Cloud, key: str) -> None:
        deletes = [notice for notice in self.pending(key) if notice.event_type == "Terminate"]
        if all(notice.approved for notice in deletes):
            for notice in deletes:
                self._start(cloud, notice, "approved")

    def _start(self, cloud: Cloud, notice: Notice, how: str) -> None:
        notice.status = STARTED
        self._incarnations[notice.key] += 1
        cloud.events.after(0.0, notice.key, "scheduled_event", notice.id, notice.event_type, list(notice.instances), how)
        cloud.events.after(LISTED_AFTER_START, SERVICE, "over", notice.id)


def scheduled_events_of(cloud: Cloud) -> ScheduledEvents:
    """Return the scheduled events of a model."""
    return cast("ScheduledEvents", cloud.services.setdefault(SERVICE, ScheduledEvents()))


def _size(body: Json) -> str:
    return str((body.get("sku") or {}).get("name", "")).lower()


def _told(scale_set: str, notice: Notice) -> Json:
    return {
        "EventId": notice.id.upper(),
        "EventType": notice.event_type,
        "ResourceType": "VirtualMachine",
        "Resources": [f"{scale_set}_{instance}" for instance in notice.instances],
        "EventStatus": notice.status,
        "NotBefore": formatdate(notice.not_before, usegmt=True) if notice.status == SCHEDULED else "",
        "Description": _DESCRIPTIONS[notice.event_type],
        "EventSource": notice.source,
        "DurationInSeconds": FREEZE if notice.event_type == "Freeze" else -1,
    }
