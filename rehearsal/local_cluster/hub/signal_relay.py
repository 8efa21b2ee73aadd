"""Relay of signals and exit status between a command in namespaces and the process that started it.

Three processes take part. The outer process is the one that the caller waits for. The inner process may be the first of its process
namespace, and reaps orphans. The third is the command. A signal to the whole process group reaches the command by itself, but a signal to
the outer process alone must be passed on. Pulumi ends at once after a second interrupt, so no signal may arrive twice. The inner process
therefore blocks the same signals: a signal that is pending there was sent to the group.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

PASSED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2})
ALL_REACHED_SECONDS = 0.01
"""Upper bound of the time in which the kernel delivers a signal to all processes of a group."""
STATUS = struct.Struct("i")
NOT_EXECUTED, REFUSED = 127, 71
"""Exit statuses: no such program, as in a shell; namespaces cannot be prepared (EX_OSERR of sysexits.h)."""


def run(prepare: Callable[[], None], argv: Sequence[str]) -> NoReturn:
    """Run a command, after `prepare` in the inner process, and exit as the command exits."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED | {signal.SIGCHLD})
    near, far = socket.socketpair()
    inner = os.fork()
    if not inner:
        near.close()
        _inner(far, prepare, argv, before)
    far.close()
    _end(_watch(inner, near))


def _watch(inner: int, near: socket.socket) -> int:
    """Send each signal to the inner process until it ends; return the command's wait status, or else the inner process's."""
    while True:
        number = signal.sigwaitinfo(PASSED | {signal.SIGCHLD}).si_signo
        if number != signal.SIGCHLD:
            with contextlib.suppress(OSError):
                near.sendall(bytes([number]))
            continue
        ended, status = os.waitpid(inner, os.WNOHANG)
        if ended:
            received = near.recv(STATUS.size)
            return int(STATUS.unpack(received)[0]) if len(received) == STATUS.size else status


def _end(status: int) -> NoReturn:
    """Exit as a process with this wait status did."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def _inner(far: socket.socket, prepare: Callable[[], None], argv: Sequence[str], mask: set[int]) -> NoReturn:
    """Run the inner process, which ends with the command; the command ends with the outer process."""
    try:
        prepare()
    except Exception as error:  # noqa: BLE001 (no other process can report it)
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        os._exit(REFUSED)
    woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    command = os.fork()
    if not command:
        _execute(argv, mask)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    while True:
        readable, _, _ = select.select([far.fileno(), woken], [], [])
        if woken in readable:
            os.read(woken, 4096)
            if (status := _reap(command)) is not None:
                far.sendall(STATUS.pack(status))
                os._exit(0)
        if far.fileno() in readable and not _pass_on(far.recv(1), command):
            with contextlib.suppress(ProcessLookupError):
                os.kill(command, signal.SIGKILL)
            os._exit(1)


def _pass_on(received: bytes, command: int) -> bool:
    """Pass a signal on unless it was sent to the group; return False if the outer process has ended."""
    if received:
        number = received[0]
        time.sleep(ALL_REACHED_SECONDS)
        if number in signal.sigpending():
            signal.sigtimedwait({number}, 0)
        else:
            os.kill(command, number)
    return bool(received)


def _reap(command: int) -> int | None:
    """Reap all ended processes; return the command's wait status if it is one of them."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while True:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if not ended:
                break
            if ended == command:
                found = status
    return found


def _execute(argv: Sequence[str], mask: set[int]) -> NoReturn:
    """Replace this process by the command."""
    signal.set_wakeup_fd(-1)
    # Python ignores these two signals, and the command would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        os.execvp(argv[0], list(argv))  # noqa: S606 (the command is the caller's)
    except OSError as error:
        sys.stderr.write(f"{argv[0]} cannot be executed: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(NOT_EXECUTED)
