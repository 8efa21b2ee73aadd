"""Standard output and standard error that handle a reader which ends first, as in `gpufleet check dev | head -1`."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from components.errors import GpufleetError

EXIT_OUTPUT_CLOSED = 141
"""128 + SIGPIPE: the status that a shell reports for `cat` or `grep` whose reader ended first."""


class OutputClosedError(SystemExit):
    """The reader of standard output has ended. It ends the command without a message; no `except Exception` or OSError stops it."""

    def __init__(self) -> None:
        super().__init__(EXIT_OUTPUT_CLOSED)


class OutputWriteError(GpufleetError):
    """Standard output cannot be written, for example because its disk is full; `reason` is that of the system."""

    def __init__(self, reason: str, state: str = "") -> None:
        self.reason = reason
        after = f"; {state}" if state else ""
        super().__init__(f"output cannot be written: {reason}{after}: free space there or give another output")


class ResultStream(io.TextIOWrapper):
    """Standard output: a write that no reader can receive ends the command with EXIT_OUTPUT_CLOSED."""

    def write(self, text: str) -> int:
        """Write a text; raise OutputClosedError if the reader has ended, OutputWriteError for another failure."""
        try:
            return super().write(text)
        except OSError as error:
            raise self._failed(error) from None

    def flush(self) -> None:
        """Write what is buffered; raise OutputClosedError if the reader has ended, OutputWriteError for another failure."""
        try:
            super().flush()
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> OutputClosedError | OutputWriteError:
        discard(self)
        return OutputClosedError() if isinstance(error, BrokenPipeError) else OutputWriteError(error.strerror or str(error))


@contextmanager
def saved_before_output(state: str) -> Iterator[None]:
    """Add the saved state to the message where the result cannot be written."""
    try:
        yield
    except OutputWriteError as error:
        raise OutputWriteError(error.reason, state) from None


class ProgressStream(io.TextIOWrapper):
    """Standard error: a write that fails is dropped, so that a command such as `up` still stores its result."""

    def write(self, text: str) -> int:
        """Write a text, or drop it if the reader has ended or the disk is full."""
        try:
            return super().write(text)
        except OSError:
            discard(self)
            return len(text)

    def flush(self) -> None:
        """Write what is buffered, or drop it if the reader has ended or the disk is full."""
        try:
            super().flush()
        except OSError:
            discard(self)


def saved_state(verb: str, folder: Path, *, complete: bool) -> str:
    """Return a clause on the result of a verb that a state directory has already."""
    return f"the {verb} is {'complete' if complete else 'not complete'} and saved in {folder}"


def discard(stream: TextIO) -> None:
    """Redirect a stream whose reader has ended or whose disk is full to /dev/null, so that Python does not report it again at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def open_outputs() -> None:
    """Replace both streams; a stream that the caller closed becomes /dev/null. A character that the encoding lacks is written as `?`."""
    sys.stdout = _opened(sys.stdout, ResultStream)
    sys.stderr = _opened(sys.stderr, ProgressStream)


def _opened(stream: TextIO | None, kind: type[io.TextIOWrapper]) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 it lasts as long as the process
    return kind(stream.buffer, stream.encoding, "replace", line_buffering=bool(stream.line_buffering), write_through=kind is ProgressStream)
