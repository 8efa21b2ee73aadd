"""Which of Azure's services on the machine's own link pods may not reach."""

from __future__ import annotations

from components.boot import scripts
from components.boot.machine import BootFile
from components.boot.unit import unit

UNIT = "gpufleet-azure-endpoints.service"
NEEDS = (f"Requires={UNIT}", f"After={UNIT}")
"""Unit lines of the kubelet: no pod runs before the services are closed to it."""


def azure_endpoint_files(before: str) -> tuple[BootFile, ...]:
    """The program that closes the instance metadata service and the wire server to pods, and its unit; before names the kubelet's unit.

    https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
    """
    service = unit(
        UNIT,
        "Azure's machine services closed to pods",
        (f"Before={before}",),
        ("Type=oneshot", "RemainAfterExit=yes", f"ExecStart={scripts.AZURE_ENDPOINTS.path}"),
    )
    return (scripts.AZURE_ENDPOINTS, service)
