"""How a systemd unit is written: one flag per line, so that a reader, and a program, sees what a service is started with."""

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
    """One flag as systemd reads it; ValueError for a value that would need quoting."""
    text = value if isinstance(value, str) else ",".join(value)
    if FORBIDDEN & set(text):
        raise ValueError(f"flag --{name} has a space, a quote or a backslash, which a unit file would split: {text!r}")
    return f"--{name}={text.replace('%', '%%')}"


def exec_start(program: str, flags: Flags) -> str:
    """The ExecStart= of a program: each flag on a line of its own, in the flags' order."""
    return " \\\n  ".join((f"ExecStart={program}", *(_argument(name, value) for name, value in flags.items())))


def unit(name: str, description: str, unit_lines: tuple[str, ...], service_lines: tuple[str, ...]) -> BootFile:
    """A service unit that is started with the machine."""
    started = timed(name, description, unit_lines, service_lines)
    return BootFile(started.path, f"{started.content}\n[Install]\nWantedBy=multi-user.target\n")


def timed(name: str, description: str, unit_lines: tuple[str, ...], service_lines: tuple[str, ...]) -> BootFile:
    """A service unit that a timer starts."""
    lines = ("[Unit]", f"Description={description}", *unit_lines, "", "[Service]", *service_lines)
    return BootFile(f"{UNIT_DIRECTORY}/{name}", "\n".join(lines) + "\n")


def timer(name: str, description: str, timer_lines: tuple[str, ...]) -> BootFile:
    """A timer that is started with the machine; it starts the service of the same name."""
    lines = ("[Unit]", f"Description={description}", "", "[Timer]", *timer_lines, "", "[Install]", "WantedBy=timers.target")
    return BootFile(f"{UNIT_DIRECTORY}/{name}", "\n".join(lines) + "\n")


def drop_in(name: str, section: str, lines: tuple[str, ...]) -> BootFile:
    """An addition to a unit that the machine's image brings."""
    return BootFile(f"{UNIT_DIRECTORY}/{name}.d/10-gpufleet.conf", "\n".join((f"[{section}]", *lines)) + "\n")
