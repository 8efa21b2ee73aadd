"""Namespaces of the hub: creation, mounts and addresses. Uses only the standard library, because it runs before other imports."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

NEWNS, NEWUSER, NEWPID, NEWNET = 0x0002_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000
"""https://man7.org/linux/man-pages/man2/unshare.2.html"""
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16_384, 1 << 18
"""https://man7.org/linux/man-pages/man2/mount.2.html"""
SIOCSIFFLAGS, SIOCSIFADDR, SIOCSIFNETMASK, IFF_UP = 0x8914, 0x8916, 0x891C, 0x1
"""https://man7.org/linux/man-pages/man7/netdevice.7.html"""
MEMORY = Path("/dev/shm")  # noqa: S108 (a mount of our own)
"""A file system in memory that ends with the namespaces."""
NSSWITCH = "hosts: files dns\n"
"""Name services of the machine, for example behind a socket in /run, are outside of the namespaces and must not be queried."""
ORDER = (("user", NEWUSER), ("pid_for_children", NEWPID), ("net", NEWNET), ("mnt", NEWNS))
"""Order of entering namespaces: the user namespace first, because it grants the right to enter the others."""


class NamespaceError(Exception):
    """An operation that the kernel refused, in one sentence with a remedy."""


def unshare_namespaces() -> None:
    """Move this process to new network and mount namespaces, and to a user namespace if necessary; raise NamespaceError.

    The next forked process is the first of a new process namespace.
    """
    namespaces = NEWNS | NEWNET | NEWPID
    user, group = os.geteuid(), os.getegid()
    failed = _unshare(namespaces) if user == 0 else errno.EPERM
    if failed == errno.EPERM:
        failed = _unshare(namespaces | NEWUSER)
        if not failed:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {user} 1")
            Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    if failed:
        raise NamespaceError(
            f"no namespaces can be made here (unshare: {os.strerror(failed)}): run as root, or let users make them (sysctl"
            " user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0; in a container: --cap-add SYS_ADMIN)"
        )


def configure_namespaces(addresses: Sequence[str], resolver: str) -> None:
    """Prepare new namespaces from their first process: /proc, memory, loopback with IPv4 addresses, and one DNS resolver.

    Raises NamespaceError.
    """
    _mount("none", "/", "", MS_REC | MS_PRIVATE)
    _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV)
    _mount("tmpfs", str(MEMORY), "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    folder = MEMORY / "etc"
    folder.mkdir()
    hosts = f"127.0.0.1 localhost {os.uname().nodename}\n"
    texts = {"nsswitch.conf": NSSWITCH, "hosts": hosts, "resolv.conf": f"nameserver {resolver}\noptions timeout:2 attempts:2\n"}
    for name, text in texts.items():
        replaced = Path("/etc", name)
        if not replaced.exists():
            if name == "resolv.conf":
                raise NamespaceError(f"{replaced} does not exist, and names cannot be resolved without it: create an empty file")
            continue
        (folder / name).write_text(text)
        _mount(str(folder / name), str(replaced.resolve()), "", MS_BIND)
    _bring_up(addresses)


def enter_namespaces(process: int) -> None:
    """Enter the namespaces of a process that called `unshare_namespaces`, for processes forked later; raise OSError if it has ended."""
    folder = Path.cwd()
    opened = [(name, kind, os.open(f"/proc/{process}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)) for name, kind in ORDER]
    own = os.stat("/proc/self/ns/user")  # noqa: PTH116 (its target is no path)
    for name, kind, descriptor in opened:
        found = os.fstat(descriptor)
        if name == "user" and (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino):
            continue
        if _library().setns(descriptor, kind):
            raise OSError(ctypes.get_errno(), f"namespace {name} of process {process} cannot be entered")
    for _, _, descriptor in opened:
        os.close(descriptor)
    os.chdir(folder)


def _bring_up(addresses: Sequence[str]) -> None:
    """Bring loopback up with 127.0.0.1 and these addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
        for number, address in enumerate(dict.fromkeys(addresses)):
            # One alias per address: lo itself has 127.0.0.1.
            name = f"lo:{number}".encode()
            for request, value in ((SIOCSIFADDR, address), (SIOCSIFNETMASK, "255.255.255.255")):
                fcntl.ioctl(control, request, struct.pack("16sHH4s8x", name, socket.AF_INET, 0, socket.inet_aton(value)))


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    if _library().mount(source.encode(), target.encode(), kind.encode(), flags, options.encode()):
        why = os.strerror(ctypes.get_errno())
        raise NamespaceError(f"{target} cannot be replaced in a mount namespace here ({why}): run as root, outside of a container")


def _unshare(namespaces: int) -> int:
    """Return the error number, or 0 for success."""
    return ctypes.get_errno() if _library().unshare(namespaces) else 0


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
