"""Decides which machines a scenario makes slowly, and which it fails to make although there is hardware."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.azure.compute.machine import FAILED, Machine, Site
from rehearsal.azure.errors import AzureError
from rehearsal.azure.scenario import scenario_of

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

_MESSAGES = {
    "OSProvisioningTimedOut": "OS Provisioning for VM '{name}' did not finish in the allotted time. The VM may still finish provisioning "
    "successfully. Please check provisioning state later.",
    "OSProvisioningInternalError": "OS Provisioning failed for VM '{name}' due to an internal error.",
    "VMExtensionProvisioningError": "VM '{name}' has reported a failure when processing an extension.",
    "InternalExecutionError": "An internal execution error occurred. Please retry later.",
}
"""https://learn.microsoft.com/troubleshoot/azure/virtual-machines/windows/troubleshoot-deployment-new-vm-windows"""


def slowness(cloud: Cloud, site: Site, attempt: int) -> float:
    """How many times as long as usual a machine takes to be made."""
    factor = 1.0
    for number, row in enumerate(scenario_of(cloud).slow_provisioning):
        if row.takes(site.size) and cloud.draw("slow", number, site.key, attempt) < row.rate:
            factor *= row.factor
    return factor


def provisioning_error(cloud: Cloud, machine: Machine, site: Site) -> AzureError | None:
    """The failure to provision a machine that has hardware; it stays, and its state is Failed. None where it succeeds."""
    for number, row in enumerate(scenario_of(cloud).failed_provisioning):
        if row.takes(site.size) and cloud.draw("provisioning", number, site.key, machine.tasks) < row.rate:
            error = AzureError(409, row.code, _MESSAGES[row.code].format(name=site.key.rpartition("/")[2]))
            machine.state, machine.error = FAILED, error.body()
            return error
    return None
