"""How many local NVMe devices a machine's data gets, and what lives on them."""

from __future__ import annotations

from components.boot import scripts
from components.boot.machine import BootFile
from components.boot.unit import unit
from components.plan.vm_sizes import VmSize

UNIT = "gpufleet-nvme.service"
NEEDS = (f"Requires={UNIT}", f"After={UNIT}")
"""Unit lines of a service whose data lives on NVMe: without it, it must not start, for it would fill the OS disk."""


def data_devices(size: VmSize) -> int:
    """Local NVMe devices of a stateless machine that an ephemeral OS disk leaves to data.

    One on NVMe takes a whole device: https://learn.microsoft.com/azure/virtual-machines/ephemeral-os-disks-faq
    """
    return size.local_nvme_disks - (1 if size.os_disk_placement == "NvmeDisk" else 0)


def nvme_files(devices: int, mount: str, binds: tuple[str, ...], fresh_unless: str | None, before: tuple[str, ...]) -> tuple[BootFile, ...]:
    """The program that makes and mounts the filesystem, and its unit.

    before names the units whose data lives there; fresh_unless is a file on the OS disk without which the filesystem is made anew, None
    where its data must outlive the OS disk.
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
