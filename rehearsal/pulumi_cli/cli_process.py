"""Process of one command of the Pulumi CLI: in the hub namespace, without the terminal's signals, with its event log followed."""

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
"""Seconds between two reads of the event log."""
STOP_TIMEOUT_SECONDS = 15.0
"""Seconds for which a CLI that was interrupted twice may still run before it is killed."""

INTERRUPTS_TO_KILL = 2
"""Number of interrupts after which the CLI stops at once."""

LineHandler = Callable[[str], None]


class PulumiCli(PulumiCommand):
    """The CLI in a hub namespace; prefix is the command that enters the namespace.

    The CLI runs in its own process group, so that Ctrl-C reaches it as one request from here, and none of the providers. The first SIGINT
    lets it finish what is under way; the second stops it at once.
    """

    def __init__(self, programs: PulumiPrograms, prefix: Sequence[str], environment: Mapping[str, str], lock: int) -> None:
        """lock is a file descriptor that stays open in every started process."""
        super().__init__()
        self.command = str(programs.cli)
        self._prefix, self._environment, self._lock = tuple(prefix), dict(environment), lock
        self._process: subprocess.Popen[str] | None = None
        self.interrupts = 0
        """Number of requests to stop."""

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
        """Run one command to its end, whatever its exit status."""
        # Entering another mount namespace leaves the working directory.
        words = [self.command, "--non-interactive", "--cwd", cwd, *args]
        return self.run_in_hub(words, additional_env, on_output, on_error)

    def run_in_hub(
        self,
        words: Sequence[str],
        additional_env: Mapping[str, str],
        on_output: LineHandler | None = None,
        on_error: LineHandler | None = None,
    ) -> CommandResult:
        """Run any program in the hub namespace, to its end."""
        environment = {**self._environment, **additional_env, "PULUMI_AUTOMATION_API": "true"}
        output: tuple[list[str], list[str]] = ([], [])
        process = subprocess.Popen(  # noqa: S603 the CLI on PATH, or a program of gpufleet
            [*self._prefix, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
            start_new_session=True,
            pass_fds=(self._lock,),
        )
        readers = [
            threading.Thread(target=_read, args=(stream, lines, handle), daemon=True)
            for stream, lines, handle in ((process.stdout, output[0], on_output), (process.stderr, output[1], on_error))
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
        return CommandResult("\n".join(output[0]), "\n".join(output[1]), process.returncode)

    @contextmanager
    def forward_interrupts(self) -> Iterator[None]:
        """Forward Ctrl-C to the running command; `interrupts` counts them, so that no further command starts."""
        before = signal.signal(signal.SIGINT, lambda *_: self.stop())
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def stop(self) -> None:
        """Interrupt the running command; after the second time, kill it where it does not stop."""
        self.interrupts += 1
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGINT)
        if self.interrupts == INTERRUPTS_TO_KILL:
            threading.Thread(target=_kill_later, args=(process,), daemon=True).start()


@contextmanager
def follow_file(path: Path, handle: LineHandler) -> Iterator[None]:
    """Call a function with every line that is written to a file, in a separate thread; the file is created first and deleted at the end."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    ended = threading.Event()
    follower = threading.Thread(target=_follow, args=(path, handle, ended), daemon=True)
    follower.start()
    try:
        yield
    finally:
        ended.set()
        follower.join()
        path.unlink(missing_ok=True)


def _follow(path: Path, handle: LineHandler, ended: threading.Event) -> None:
    rest = ""
    with path.open(encoding="utf-8") as stream:
        while True:
            last = ended.is_set()
            while read := stream.read(1 << 20):
                *lines, rest = (rest + read).split("\n")
                for line in lines:
                    handle(line)
            if last:
                return
            ended.wait(POLL_SECONDS)


def _read(stream: IO[str] | None, lines: list[str], handle: LineHandler | None) -> None:
    if stream is None:
        return
    with stream:
        for line in stream:
            lines.append(line.rstrip())
            if handle is not None:
                handle(lines[-1])


def _kill_later(process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + STOP_TIMEOUT_SECONDS
    while process.poll() is None and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
    if process.poll() is None:
        process.kill()
