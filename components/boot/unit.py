"""Text of systemd units, with one flag per line."""

from __future__ import annotations

from collections.abc import Mapping

from components.boot.machine import BootFile

Flags = Mapping[str, str | tuple[str, ...]]
"""Flags of a program by name without dashes; a tuple is a comma-separated list."""

UNIT_DIRECTORY = "/etc/systemd/system"
FORBIDDEN = frozenset(" \t\n\"'\\")
CONFINED = (
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "PrivateTmp=yes",
    "PrivateDevices=yes",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectControlGroups=yes",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
    "RestrictNamespaces=yes",
    "LockPersonality=yes",
)
"""Confinement of a network service that needs no privilege, though it runs as root to read its keys."""


def _argument(name: str, value: str | tuple[str, ...]) -> str:
    """Return a flag in systemd's syntax; raise ValueError for a value that would need quotes."""
    text = value if isinstance(value, str) else ",".join(value)
    if FORBIDDEN & set(text):
        raise ValueError(f"flag --{name} has a space, a quote or a backslash, which a unit file would split: {text!r}")
    return f"--{name}={text.replace('%', '%%')}"


def exec_start(program: str, flags: Flags) -> str:
    """Return the ExecStart= of a program, with each flag on its own line, in order."""
    return " \\\n  ".join((f"ExecStart={program}", *(_argument(name, value) for name, value in flags.items())))


def unit(name: str, description: str, unit_lines: tuple[str, ...], service_lines: tuple[str, ...]) -> BootFile:
    """Return a service unit that starts with the machine."""
    started = timed(name, description, unit_lines, service_lines)
    return BootFile(started.path, f"{started.content}\n[Install]\nWantedBy=multi-user.target\n")


def timed(name: str, description: str, unit_lines: tuple[str, ...], service_lines: tuple[str, ...]) -> BootFile:
    """Return a service unit that a timer starts."""
    lines = ("[Unit]", f"Description={description}", *unit_lines, "", "[Service]", *service_lines)
    return BootFile(f"{UNIT_DIRECTORY}/{name}", "\n".join(lines) + "\n")


def timer(name: str, description: str, timer_lines: tuple[str, ...]) -> BootFile:
    """Return a timer that starts with the machine; it starts the service of the same name."""
    lines = ("[Unit]", f"Description={description}", "", "[Timer]", *timer_lines, "", "[Install]", "WantedBy=timers.target")
    return BootFile(f"{UNIT_DIRECTORY}/{name}", "\n".join(lines) + "\n")


def drop_in(name: str, section: str, lines: tuple[str, ...]) -> BootFile:
    """Return an addition to a unit of the machine's image."""
    return BootFile(f"{UNIT_DIRECTORY}/{name}.d/10-gpufleet.conf", "\n".join((f"[{section}]", *lines)) + "\n")
