"""Tells systemd how the program fares, where it was started by it."""

from __future__ import annotations

import contextlib
import os
import socket

NOTIFY_SECONDS = 1.0
"""A service manager that does not read its messages by then loses this one: the machine's network does not wait for it."""


def notify(*states: str) -> None:
    """Sends states such as READY=1; without NOTIFY_SOCKET nothing: https://www.freedesktop.org/software/systemd/man/sd_notify.html"""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path:
        return
    address = f"\0{path[1:]}" if path.startswith("@") else path
    # A service manager that is just restarting must not end the program that it manages.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
        out.settimeout(NOTIFY_SECONDS)
        out.sendto("\n".join(states).encode(), address)
