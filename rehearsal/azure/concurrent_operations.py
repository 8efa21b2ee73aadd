"""Requests that arrive while another operation on the same resource runs: one table of outcomes, with the evidence for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rehearsal.azure.errors import AzureError

ACCEPTED, JOINED, PREEMPTS, REFUSED = "accepted", "joined", "preempts", "refused"
"""Both operations run; the response names the running operation; the running operation fails with OperationPreempted; an error."""

ROLLING, SET_PUT, SET_DELETE, SET_REQUEST = "rolling upgrade", "PUT of the set", "DELETE of the set", "POST to the set"
TASK, DELETE, REQUEST, LISTED = "operation on the instance", "delete of the instance", "POST to the instance", "POST with instanceIds"
OTHERS, NETWORK = "operation on other instances", "change in the network"
ANY_DELETE, ANY_PUT = "DELETE of the resource", "PUT of the resource"
MACHINE_DELETE, MACHINE_PUT, GROUP_DELETE = "DELETE of the machine", "PUT of the machine", "DELETE of the group"


@dataclass(frozen=True)
class Concurrency:
    """One pair of a running operation and a request: the outcome, the error of a refusal, and public reports of it.

    message has the names of the refusal in braces. Without sources the outcome is assumed.
    """

    running: str
    request: str
    outcome: str
    status: int = 0
    code: str = ""
    message: str = ""
    sources: tuple[str, ...] = ()


_ISSUES = "https://github.com"
_CONCURRENT = (
    "The request failed due to conflict with a concurrent request. To resolve it, please refer to https://aka.ms/activitylog to get more "
    "details on the conflicting requests."
)
_MARKED_VM = (
    "Operation '{words}' is not allowed on VM '{name}' since the VM is marked for deletion. You can only retry the Delete operation (or "
    "wait for an ongoing one to complete)."
)
_MARKED_SET = (
    "Operation '{words}' is not allowed on Virtual Machine Scale Set '{name}' since it is marked for deletion. For more information on "
    "your operations, please refer to https://aka.ms/activitylog."
)
_IN_UPGRADE = (
    "Operation '{words}' is not allowed on Virtual Machine Scale Set '{name}' since a Rolling Upgrade is in progress. Cancel the Rolling "
    "Upgrade or wait for it to complete."
)
_VM_DELETE = (f"{_ISSUES}/sassoftware/viya4-iac-azure/issues/140", f"{_ISSUES}/cloud-barista/cb-spider/issues/342")
_PREEMPTED = (f"{_ISSUES}/Azure/azure-rest-api-specs/issues/22434", f"{_ISSUES}/Azure/azure-sdk-for-python/issues/5167")
_DELETE_PREEMPTED = (f"{_ISSUES}/kubernetes/autoscaler/pull/9505", f"{_ISSUES}/kubernetes-sigs/cloud-provider-azure/pull/5920")
_SAME_INSTANCE = (f"{_ISSUES}/kubernetes-sigs/cloud-provider-azure/pull/2386", f"{_ISSUES}/microsoft/onefuzz/issues/2124")
_OTHER_INSTANCES = (
    f"{_ISSUES}/kubernetes/autoscaler/pull/3284",
    f"{_ISSUES}/Azure/azure-libraries-for-net/issues/1260",
    f"{_ISSUES}/Azure/azure-powershell/issues/23105",
    f"{_ISSUES}/kubernetes/kops/pull/18350",
)
_UPGRADE_REFUSES = (f"{_ISSUES}/hashicorp/terraform-provider-azurerm/issues/7002", f"{_ISSUES}/Azure/telescope/pull/1291")
_SET_MARKED = (f"{_ISSUES}/microsoft/onefuzz/pull/511", f"{_ISSUES}/kubernetes-sigs/cloud-provider-azure/issues/481")
_NETWORK_BUSY = (f"{_ISSUES}/Azure/bicep/issues/5132", f"{_ISSUES}/pulumi/pulumi-azure-native/issues/903")

CONCURRENT_OPERATIONS: Final = (
    Concurrency(ROLLING, SET_PUT, REFUSED, 409, "OperationNotAllowed", _IN_UPGRADE, _UPGRADE_REFUSES),
    Concurrency(ROLLING, ROLLING, REFUSED, 409, "OperationNotAllowed", _IN_UPGRADE, _UPGRADE_REFUSES[1:]),
    Concurrency(ROLLING, SET_DELETE, PREEMPTS),
    Concurrency(SET_PUT, SET_PUT, PREEMPTS, sources=_PREEMPTED),
    Concurrency(SET_PUT, SET_DELETE, PREEMPTS),
    Concurrency(SET_PUT, REQUEST, ACCEPTED),
    Concurrency(TASK, SET_PUT, ACCEPTED),
    Concurrency(TASK, SET_DELETE, PREEMPTS, sources=_DELETE_PREEMPTED),
    Concurrency(TASK, REQUEST, REFUSED, 409, "Conflict", _CONCURRENT, _SAME_INSTANCE),
    Concurrency(TASK, DELETE, PREEMPTS, sources=_DELETE_PREEMPTED),
    Concurrency(OTHERS, REQUEST, ACCEPTED, 409, "Conflict", _CONCURRENT, _OTHER_INSTANCES),
    Concurrency(DELETE, REQUEST, REFUSED, 409, "OperationNotAllowed", _MARKED_VM, _VM_DELETE),
    Concurrency(DELETE, DELETE, JOINED, sources=_VM_DELETE),
    Concurrency(
        DELETE,
        LISTED,
        REFUSED,
        400,
        "InvalidParameter",
        "The provided instanceId {name} is not an active Virtual Machine Scale Set VM instanceId.",
        (f"{_ISSUES}/kubernetes-sigs/cloud-provider-azure/issues/2356",),
    ),
    Concurrency(SET_DELETE, SET_PUT, REFUSED, 409, "OperationNotAllowed", _MARKED_SET, _SET_MARKED),
    Concurrency(SET_DELETE, SET_REQUEST, REFUSED, 409, "OperationNotAllowed", _MARKED_SET, _SET_MARKED),
    Concurrency(SET_DELETE, SET_DELETE, JOINED, sources=_VM_DELETE),
    Concurrency(MACHINE_PUT, MACHINE_PUT, PREEMPTS, sources=_PREEMPTED[1:]),
    Concurrency(MACHINE_PUT, MACHINE_DELETE, PREEMPTS, sources=_PREEMPTED[1:]),
    Concurrency(MACHINE_DELETE, MACHINE_PUT, REFUSED, 409, "OperationNotAllowed", _MARKED_VM, _VM_DELETE),
    Concurrency(MACHINE_DELETE, MACHINE_DELETE, JOINED, sources=_VM_DELETE),
    Concurrency(
        GROUP_DELETE,
        ANY_PUT,
        REFUSED,
        409,
        "ResourceGroupBeingDeleted",
        "The resource group '{name}' is in deprovisioning state and cannot perform this operation.",
        (f"{_ISSUES}/Azure/azure-cli/issues/21121",),
    ),
    Concurrency(
        NETWORK,
        NETWORK,
        REFUSED,
        409,
        "AnotherOperationInProgress",
        "Another operation on this or dependent resource is in progress. To retrieve status of the operation use uri: {uri}.",
        _NETWORK_BUSY,
    ),
    Concurrency(ANY_DELETE, ANY_PUT, REFUSED, 409, "ResourceBeingDeleted", "{name} is being deleted."),
    Concurrency(ANY_DELETE, ANY_DELETE, JOINED),
)
"""Outcome by running operation and request."""

_BY_PAIR = {(row.running, row.request): row for row in CONCURRENT_OPERATIONS}


def row_of(running: str, request: str) -> Concurrency:
    """Return the row of a pair; KeyError for a pair that the table does not have."""
    return _BY_PAIR[running, request]


def refusal(running: str, request: str, target: str, **names: str) -> AzureError:
    """Return the error with which Azure refuses a request while an operation runs; target names the resource, names fill the message."""
    row = row_of(running, request)
    return AzureError(row.status, row.code, row.message.format(**names), target=target)


def markdown_row(row: Concurrency) -> str:
    """Return a row of the table in docs/embedded-azure.md."""
    error = f"{row.status} `{row.code}`" if row.code else ""
    outcome = {ACCEPTED: f"accepted; a scenario can refuse it with {error}" if error else "accepted", REFUSED: error}.get(
        row.outcome, "pre-empts" if row.outcome == PREEMPTS else row.outcome
    )
    evidence = ", ".join(f"[{url.removeprefix(_ISSUES + '/')}]({url})" for url in row.sources) or "assumed"
    return f"| {row.running} | {row.request} | {outcome} | {evidence} |"
