"""Filesystem on local NVMe devices for a machine's data."""

from __future__ import annotations

from components.boot import scripts
from components.boot.machine import BootFile
from components.boot.unit import unit
from components.plan.vm_sizes import VmSize

UNIT = "gpufleet-nvme.service"
NEEDS = (f"Requires={UNIT}", f"After={UNIT}")
"""Unit lines of a service with data on NVMe: it must not start without NVMe, since it would fill the OS disk."""


def data_devices(size: VmSize) -> int:
    """Return the number of local NVMe devices of a stateless machine for data.

    An ephemeral OS disk on NVMe uses a whole device: https://learn.microsoft.com/azure/virtual-machines/ephemeral-os-disks-faq
    """
    return size.local_nvme_disks - (1 if size.os_disk_placement == "NvmeDisk" else 0)


def nvme_files(devices: int, mount: str, binds: tuple[str, ...], fresh_unless: str | None, before: tuple[str, ...]) -> tuple[BootFile, ...]:
    """Return the program that creates and mounts the filesystem, and its unit.

    before lists the units with data there. fresh_unless is a file on the OS disk; if it is missing, the filesystem is recreated. None
    preserves the data when the OS disk is replaced.
    """
    flags = [f"--devices={devices}", f"--mount={mount}", *(f"--bind={bind}" for bind in binds)]
    if fresh_unless is not None:
        flags.append(f"--fresh-unless={fresh_unless}")
    service = unit(
        UNIT,
        "Filesystem on local NVMe",
        (f"Before={' '.join(before)}",),
        ("Type=oneshot", "RemainAfterExit=yes", " \\\n  ".join((f"ExecStart={scripts.NVME.path}", *flags))),
    )
    return (scripts.NVME, service)
