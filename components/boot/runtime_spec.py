"""Base specification of containers: containerd's default with mounts of host files."""

from __future__ import annotations

import json
from collections.abc import Mapping

from components.boot.machine import BootFile

PATH = "/etc/containerd/gpufleet-runtime-spec.json"
_OCI_VERSION = "1.3.0"
_CAPABILITIES = (
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "MKNOD",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETFCAP",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
    "AUDIT_WRITE",
)
_NAMESPACES = ("pid", "ipc", "uts", "mount", "network")
_MASKED = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
    "/proc/scsi",
)
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_MOUNTS = (
    ("/proc", "proc", "proc", "nosuid,noexec,nodev"),
    ("/dev", "tmpfs", "tmpfs", "nosuid,strictatime,mode=755,size=65536k"),
    ("/dev/pts", "devpts", "devpts", "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5"),
    ("/dev/shm", "tmpfs", "shm", "nosuid,noexec,nodev,mode=1777,size=65536k"),  # noqa: S108 a mount point in containers, not a file of the host
    ("/dev/mqueue", "mqueue", "mqueue", "nosuid,noexec,nodev"),
    ("/sys", "sysfs", "sysfs", "nosuid,noexec,nodev,ro"),
    ("/run", "tmpfs", "tmpfs", "nosuid,strictatime,mode=755,size=65536k"),
)
_BIND = "bind,ro,nosuid,nodev,noexec"


def runtime_spec(mounted: Mapping[str, str]) -> BootFile:
    """Return the base specification of containers, in the format of the Open Container Initiative; mounted maps their paths to host files.

    containerd reads it at its start and adds the kubelet's settings; it does not apply to pause containers. A mount of the pod at the same
    path overrides it. docs/adr/0006-files-for-every-container.md has the reasons.
    https://github.com/containerd/containerd/blob/v2.4.2/docs/cri/config.md
    """
    capabilities = [f"CAP_{name}" for name in _CAPABILITIES]
    mounts = (*_MOUNTS, *((inside, "bind", host, _BIND) for inside, host in mounted.items()))
    spec = {
        "ociVersion": _OCI_VERSION,
        # Without resource limits: those of containerd's unit apply to containers only if the specification has none.
        "process": {
            "user": {"uid": 0, "gid": 0},
            "cwd": "/",
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), capabilities),
            "noNewPrivileges": True,
        },
        "root": {"path": "rootfs"},
        "mounts": [
            {"destination": destination, "type": kind, "source": source, "options": options.split(",")}
            for destination, kind, source, options in mounts
        ],
        "linux": {
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
            "namespaces": [{"type": kind} for kind in _NAMESPACES],
            "maskedPaths": list(_MASKED),
            "readonlyPaths": list(_READ_ONLY),
        },
    }
    sections = ",\n".join(f'"{name}": {_section(value)}' for name, value in spec.items())
    return BootFile(PATH, f"{{\n{sections}\n}}\n")


def _section(value: object) -> str:
    """Return one section as JSON on one line, but mounts on a line each, so that a review shows each mounted file."""
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(f"  {json.dumps(item)}" for item in value) + "\n]"
