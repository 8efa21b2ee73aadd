"""What every container on a node starts from where the host hands it files: containerd's own default, and those files."""

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
    ("/dev/shm", "tmpfs", "shm", "nosuid,noexec,nodev,mode=1777,size=65536k"),  # noqa: S108 a mount point in containers, no file of ours
    ("/dev/mqueue", "mqueue", "mqueue", "nosuid,noexec,nodev"),
    ("/sys", "sysfs", "sysfs", "nosuid,noexec,nodev,ro"),
    ("/run", "tmpfs", "tmpfs", "nosuid,strictatime,mode=755,size=65536k"),
)
_BIND = "bind,ro,nosuid,nodev,noexec"


def runtime_spec(handed: Mapping[str, str]) -> BootFile:
    """Specification that containers start from, in the Open Container Initiative's format; handed maps paths in them to the host's files.

    containerd reads it when it starts and puts on top what the kubelet asks for; it never applies to a pod's pause container. A mount
    of the pod's own at the same path wins. docs/adr/0006-files-for-every-container.md says why it is done so.
    https://github.com/containerd/containerd/blob/v2.4.2/docs/cri/config.md
    """
    capabilities = [f"CAP_{name}" for name in _CAPABILITIES]
    mounts = (*_MOUNTS, *((inside, "bind", host, _BIND) for inside, host in handed.items()))
    spec = {
        "ociVersion": _OCI_VERSION,
        # Without limits on resources: those of containerd's unit reach containers only where the specification has none.
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
    """JSON of one section on one line, but a line for each mount: a reviewer sees which file is handed on."""
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(f"  {json.dumps(item)}" for item in value) + "\n]"
