"""Waits for the time of the next look at everything, or for a change of routes before it, as when a pod has come."""

from __future__ import annotations

import errno
import select
import socket
import time
from types import TracebackType

IPV4_ROUTES = 0x40
"""RTMGRP_IPV4_ROUTE of https://man7.org/linux/man-pages/man7/rtnetlink.7.html."""

GATHER_SECONDS = 0.5
"""Between two looks at least: pods come by the dozen, and each look is for all of them."""

READ = 65_536


class RouteEvents:
    """The kernel's notices of routes that came or went, which each pod's address does; a context manager."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE)
        self.socket.bind((0, IPV4_ROUTES))

    def __enter__(self) -> RouteEvents:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.socket.close()

    def wait(self, seconds: float) -> None:
        """Return after so many seconds, or when routes have changed since the last time, but no sooner than GATHER_SECONDS."""
        end = time.monotonic() + seconds
        time.sleep(min(seconds, GATHER_SECONDS))
        select.select([self.socket], [], [], max(0.0, end - time.monotonic()))
        self._read()

    def _read(self) -> None:
        """Take all notices; what they say is looked up afresh anyhow, also where so many came that some were lost."""
        while True:
            try:
                self.socket.recv(READ)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
