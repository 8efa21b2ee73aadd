"""Decides how one command of the CLI runs: inside a hub's network, apart from the terminal's signals, its events told as they happen."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pulumi.automation import CommandResult, PulumiCommand
from pulumi.automation.errors import create_command_error

from rehearsal.pulumi_cli.engine_choice import PulumiPrograms

POLL_SECONDS = 0.1
"""Seconds between two looks at the file of events."""
STOP_TIMEOUT_SECONDS = 15.0
"""Seconds that a CLI which was told twice to stop may still take, before it is killed."""

INTERRUPTS_TO_KILL = 2
"""Interrupts after which it shall not end what is under way."""

LineHandler = Callable[[str], None]


class PulumiCli(PulumiCommand):
    """The CLI, run inside a hub's network: prefix is what a program is started with to be there.

    It is in a process group of its own, so that Ctrl-C reaches it as one request, from here, and none of the providers: the first SIGINT
    lets it end what is under way, the second makes it stop at once.
    """

    def __init__(self, programs: PulumiPrograms, prefix: Sequence[str], environment: Mapping[str, str], hold: int) -> None:
        """hold is a file descriptor that stays open in whatever is started, for as long as it lives."""
        super().__init__()
        self.command = str(programs.cli)
        self._prefix, self._environment, self._hold = tuple(prefix), dict(environment), hold
        self._process: subprocess.Popen[str] | None = None
        self.interrupts = 0
        """How many times it was asked to stop."""

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: LineHandler | None = None,
        on_error: LineHandler | None = None,
    ) -> CommandResult:
        """Run one command to its end; CommandError where it fails."""
        result = self.execute(args, cwd, additional_env, on_output, on_error)
        if result.code:
            raise create_command_error(result)
        return result

    def execute(
        self,
        args: Sequence[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: LineHandler | None = None,
        on_error: LineHandler | None = None,
    ) -> CommandResult:
        """Run one command to its end, however it ends."""
        # Entering another mount namespace leaves the working directory.
        words = [self.command, "--non-interactive", "--cwd", cwd, *args]
        return self.run_inside(words, additional_env, on_output, on_error)

    def run_inside(
        self,
        words: Sequence[str],
        additional_env: Mapping[str, str],
        on_output: LineHandler | None = None,
        on_error: LineHandler | None = None,
    ) -> CommandResult:
        """Run any program inside the hub's network, to its end."""
        environment = {**self._environment, **additional_env, "PULUMI_AUTOMATION_API": "true"}
        told: tuple[list[str], list[str]] = ([], [])
        process = subprocess.Popen(  # noqa: S603 the CLI that was found, or a program of ours
            [*self._prefix, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
            start_new_session=True,
            pass_fds=(self._hold,),
        )
        readers = [
            threading.Thread(target=_read, args=(stream, lines, tell), daemon=True)
            for stream, lines, tell in ((process.stdout, told[0], on_output), (process.stderr, told[1], on_error))
        ]
        self._process = process
        for reader in readers:
            reader.start()
        try:
            process.wait()
        finally:
            self._process = None
        for reader in readers:
            reader.join(STOP_TIMEOUT_SECONDS)
        return CommandResult("\n".join(told[0]), "\n".join(told[1]), process.returncode)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Pass a Ctrl-C that comes meanwhile on to the command that runs; interrupts tells whoever starts the next that there was one."""
        before = signal.signal(signal.SIGINT, lambda *_: self.stop())
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def stop(self) -> None:
        """Ask the command that runs now to stop; the second time at once, and where it does not, by force."""
        self.interrupts += 1
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGINT)
        if self.interrupts == INTERRUPTS_TO_KILL:
            threading.Thread(target=_kill_later, args=(process,), daemon=True).start()


@contextmanager
def follow_file(path: Path, tell: LineHandler) -> Iterator[None]:
    """Tell every line that is written to a file, which is made for it and gone afterwards; in a thread of its own."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    ended = threading.Event()
    follower = threading.Thread(target=_follow, args=(path, tell, ended), daemon=True)
    follower.start()
    try:
        yield
    finally:
        ended.set()
        follower.join()
        path.unlink(missing_ok=True)


def _follow(path: Path, tell: LineHandler, ended: threading.Event) -> None:
    rest = ""
    with path.open(encoding="utf-8") as stream:
        while True:
            last = ended.is_set()
            while read := stream.read(1 << 20):
                *lines, rest = (rest + read).split("\n")
                for line in lines:
                    tell(line)
            if last:
                return
            ended.wait(POLL_SECONDS)


def _read(stream: IO[str] | None, lines: list[str], tell: LineHandler | None) -> None:
    if stream is None:
        return
    with stream:
        for line in stream:
            lines.append(line.rstrip())
            if tell is not None:
                tell(lines[-1])


def _kill_later(process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + STOP_TIMEOUT_SECONDS
    while process.poll() is None and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
    if process.poll() is None:
        process.kill()
