"""One machine: its tasks and their effect on power, disks, host and guest, and the scenario's slow or failed provisioning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rehearsal.azure.capacity import capacity_of
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.concurrent_operations import DELETE, REQUEST, TASK, refusal
from rehearsal.azure.errors import AzureError, conflict
from rehearsal.azure.resource import Json
from rehearsal.azure.scenario import operation_seconds, scenario_of

CREATING, UPDATING, DELETING, SUCCEEDED, FAILED = "Creating", "Updating", "Deleting", "Succeeded", "Failed"
RUNNING, STOPPED, DEALLOCATED = "running", "stopped", "deallocated"


@dataclass(slots=True)
class Machine:
    """One machine: its provisioning state, Azure's PowerState (empty before it first ran) and host (empty without hardware).

    doing is the id of the operation that works on it and task its task, both empty when it is idle; turn identifies that task;
    settled is when the last task ended. tasks and attempts count tasks and placements, so that each is drawn separately. os_disk and
    local_disks count how often the OS disk, and the temporary and NVMe disks, were replaced, which erases their data. ready is the
    time at which the guest is up, in seconds since 1970. generalized is True for a virtual machine that was marked so.
    """

    state: str = CREATING
    power: str = ""
    host: str = ""
    doing: str = ""
    task: str = ""
    turn: int = 0
    tasks: int = 0
    attempts: int = 0
    os_disk: int = 0
    local_disks: int = 0
    ready: float = 0.0
    settled: float = 0.0
    error: Json | None = None
    generalized: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """Placement of a machine: its key, location, VM size, zone (empty outside one), and its reservation and constraints."""

    key: str
    location: str
    size: str
    zone: str = ""
    spot: bool = False
    group: str = ""
    constraints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """A task on a machine: its duration (a name of durations), and the states during and after it.

    hosts is the effect on the hardware: kept, taken if it has none, moved to another, or left. wipes names the disks that are
    replaced; boots is True if the guest starts again. powers are the power states in which Azure allows the task, empty for all.
    """

    words: str
    seconds: str
    state: str = UPDATING
    during: str = ""
    after: str = ""
    hosts: str = "kept"
    wipes: str = ""
    boots: bool = False
    powers: tuple[str, ...] = ()


_ON = (RUNNING, STOPPED)
TASKS: Mapping[str, Task] = {
    "create": Task("Create VM", "vm.create", CREATING, after=RUNNING, hosts="taken", wipes="os local", boots=True),
    "delete": Task("Delete VM", "vm.delete", DELETING),
    "start": Task("Start VM", "vm.start", during="starting", after=RUNNING, hosts="taken", boots=True),
    "restart": Task("Restart VM", "vm.restart", after=RUNNING, boots=True, powers=_ON),
    "poweroff": Task("Power Off VM", "vm.power_off", during="stopping", after=STOPPED),
    "deallocate": Task("Deallocate VM", "vm.deallocate", during="deallocating", after=DEALLOCATED, hosts="left", wipes="local"),
    "reimage": Task("Reimage VM", "vm.reimage", after=RUNNING, wipes="os", boots=True, powers=_ON),
    "reimageall": Task("Reimage VM", "vm.reimage", after=RUNNING, wipes="os", boots=True, powers=_ON),
    "reimagetemp": Task("Reimage VM", "vm.reimage", after=RUNNING, wipes="os local", boots=True, powers=_ON),
    "redeploy": Task("Redeploy VM", "vm.redeploy", after=RUNNING, hosts="moved", wipes="local", boots=True, powers=_ON),
    "update": Task("Update VM", "vm.update"),
    "reapply": Task("Reapply VM", "vm.update"),
    "upgrade": Task("Update VM", "vm.reimage", wipes="os", boots=True),
    "resize": Task("Update VM", "vm.redeploy", hosts="moved", wipes="local", boots=True),
    "recover": Task("Recover VM", "vm.redeploy", after=RUNNING, hosts="broken", wipes="local", boots=True),
    "reboot": Task("Maintain VM", "vm.restart", after=RUNNING, boots=True),
}
"""A change of hardware erases the temporary and NVMe disks, a reimage the OS disk:
https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-automatic-instance-repairs (table of repair
actions) and https://learn.microsoft.com/troubleshoot/azure/virtual-machines/windows/redeploy-to-new-node-windows.
"""


def busy_refusal(machine: Machine, name: str, words: str) -> AzureError | None:
    """Return why a machine's state does not allow an operation, None if it does. name is the machine's, words that of the operation."""
    if machine.state == DELETING:
        return refusal(DELETE, REQUEST, name, words=words, name=name)
    return refusal(TASK, REQUEST, name) if machine.doing else None


def power_refusal(machine: Machine, name: str, task: str) -> AzureError | None:
    """Return why a machine's power does not allow a task; None if it does."""
    allowed = TASKS[task].powers
    if not allowed or machine.power in allowed:
        return None
    message = (
        f"Operation '{TASKS[task].words}' is not allowed on VM '{name}' since it is {machine.power or 'not provisioned'}; it must be "
        f"{' or '.join(allowed)}."
    )
    return conflict("OperationNotAllowed", message, name)


def begin(cloud: Cloud, machine: Machine, task: str, operation: str, turn: int, site: Site) -> float:
    """Start a task, and return its duration in seconds."""
    row = TASKS[task]
    machine.doing, machine.task, machine.turn, machine.state = operation, task, turn, row.state
    machine.power = row.during or machine.power
    machine.tasks += 1
    return operation_seconds(cloud, row.seconds, site.key, machine.tasks)


def end(cloud: Cloud, machine: Machine, site: Site) -> AzureError | None:
    """End the task and apply its effect; return the failure if the task needed hardware and none was available."""
    row = TASKS[machine.task]
    fresh = row.hosts == "taken" and not machine.host
    machine.doing = machine.task = ""
    machine.settled = cloud.now
    try:
        _change_host(cloud, machine, row.hosts, site)
    except AzureError as refused:
        machine.state, machine.error = FAILED, refused.body()
        machine.power = machine.power if machine.host else (DEALLOCATED if machine.power else "")
        return refused
    machine.state, machine.error = SUCCEEDED, None
    machine.power = row.after or machine.power
    machine.os_disk += "os" in row.wipes
    machine.local_disks += "local" in row.wipes or (fresh and "os" not in row.wipes)
    if row.boots and machine.power == RUNNING:
        machine.ready = cloud.now + operation_seconds(cloud, "vm.boot", site.key, machine.tasks)
    return None


def vacate(cloud: Cloud, machine: Machine) -> None:
    """Release the host of a machine."""
    if machine.host:
        capacity_of(cloud).leave(machine.host)
        machine.host = ""


def _change_host(cloud: Cloud, machine: Machine, hosts: str, site: Site) -> None:
    """Allocate, change or release the hardware; AzureError if none is available, and then the machine stays on its host."""
    if hosts == "left":
        vacate(cloud, machine)
    elif (hosts in ("moved", "broken") and machine.host) or (hosts == "taken" and not machine.host):
        old = machine.host
        machine.host = _place(cloud, machine, site)
        if old:
            capacity_of(cloud).leave(old, broken=hosts == "broken")


def _place(cloud: Cloud, machine: Machine, site: Site) -> str:
    machine.attempts += 1
    return capacity_of(cloud).place(
        cloud,
        key=site.key,
        location=site.location,
        size=site.size,
        zone=site.zone,
        spot=site.spot,
        attempt=machine.attempts,
        group=site.group,
        constraints=site.constraints,
    )


_MESSAGES = {
    "OSProvisioningTimedOut": "OS Provisioning for VM '{name}' did not finish in the allotted time. The VM may still finish provisioning "
    "successfully. Please check provisioning state later.",
    "OSProvisioningInternalError": "OS Provisioning failed for VM '{name}' due to an internal error.",
    "VMExtensionProvisioningError": "VM '{name}' has reported a failure when processing an extension.",
    "InternalExecutionError": "An internal execution error occurred. Please retry later.",
}
"""https://learn.microsoft.com/troubleshoot/azure/virtual-machines/windows/troubleshoot-deployment-new-vm-windows"""


def slowness(cloud: Cloud, site: Site, attempt: int) -> float:
    """Return the factor by which the scenario slows the creation of a machine."""
    factor = 1.0
    for number, row in enumerate(scenario_of(cloud).slow_provisioning):
        if row.takes(site.size) and cloud.draw("slow", number, site.key, attempt) < row.rate:
            factor *= row.factor
    return factor


def provisioning_error(cloud: Cloud, machine: Machine, site: Site) -> AzureError | None:
    """Return the scenario's failure to provision a machine that has hardware, and set its state to Failed; None if it succeeds."""
    for number, row in enumerate(scenario_of(cloud).failed_provisioning):
        if row.takes(site.size) and cloud.draw("provisioning", number, site.key, machine.tasks) < row.rate:
            error = AzureError(409, row.code, _MESSAGES[row.code].format(name=site.key.rpartition("/")[2]))
            machine.state, machine.error = FAILED, error.body()
            return error
    return None
