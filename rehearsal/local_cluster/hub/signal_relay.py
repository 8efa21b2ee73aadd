"""Decides how signals, and the end, pass between a command and whoever started it, over a border that is between their processes.

Three processes: the outer one, which whoever started it knows and waits for; the inner one, on the other side of the border, where it may
be the first of its process namespace and reaps what others leave; and the command. A signal that is sent to all of a process group reaches
the command by itself, one that is sent to the outer process alone must be passed on, and Pulumi takes a second interrupt for an order to
end at once. So the inner process blocks the same signals, and what is pending there was sent to all.
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
"""What the kernel needs at most, once one process of a group has a signal, to give it to the others."""
STATUS = struct.Struct("i")
NOT_EXECUTED, REFUSED = 127, 71
"""Exit statuses: no such program, as a shell has it; the namespaces could not be furnished (EX_OSERR of sysexits.h)."""


def run(prepare: Callable[[], None], argv: Sequence[str]) -> NoReturn:
    """Run a command beyond a border, which `prepare` makes ready in the inner process, and end as it ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED | {signal.SIGCHLD})
    near, far = socket.socketpair()
    inner = os.fork()
    if not inner:
        near.close()
        _inner(far, prepare, argv, before)
    far.close()
    _end(_watch(inner, near))


def _watch(inner: int, near: socket.socket) -> int:
    """Tell the inner process of each signal until it has ended; the command's wait status, or else its own."""
    while True:
        number = signal.sigwaitinfo(PASSED | {signal.SIGCHLD}).si_signo
        if number != signal.SIGCHLD:
            with contextlib.suppress(OSError):
                near.sendall(bytes([number]))
            continue
        ended, status = os.waitpid(inner, os.WNOHANG)
        if ended:
            told = near.recv(STATUS.size)
            return int(STATUS.unpack(told)[0]) if len(told) == STATUS.size else status


def _end(status: int) -> NoReturn:
    """End as a process with a wait status did."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def _inner(far: socket.socket, prepare: Callable[[], None], argv: Sequence[str], mask: set[int]) -> NoReturn:
    """The inner process: it ends with the command, and the command with the outer process."""
    try:
        prepare()
    except Exception as error:  # noqa: BLE001 (nobody else could tell it)
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
            if (status := _reaped(command)) is not None:
                far.sendall(STATUS.pack(status))
                os._exit(0)
        if far.fileno() in readable and not _passed_on(far.recv(1), command):
            with contextlib.suppress(ProcessLookupError):
                os.kill(command, signal.SIGKILL)
            os._exit(1)


def _passed_on(told: bytes, command: int) -> bool:
    """Pass a signal on, unless it was sent to all; False where nobody is there any more to tell of one."""
    if told:
        number = told[0]
        time.sleep(ALL_REACHED_SECONDS)
        if number in signal.sigpending():
            signal.sigtimedwait({number}, 0)
        else:
            os.kill(command, number)
    return bool(told)


def _reaped(command: int) -> int | None:
    """Reap whatever has ended; the command's wait status where that is among it."""
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
    """Become the command."""
    signal.set_wakeup_fd(-1)
    # Python ignores these two, and what is ignored stays so in the command.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        os.execvp(argv[0], list(argv))  # noqa: S606 (the command is the caller's)
    except OSError as error:
        sys.stderr.write(f"{argv[0]} cannot be executed: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(NOT_EXECUTED)
