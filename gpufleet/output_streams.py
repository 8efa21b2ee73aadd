"""Standard output and standard error that handle a reader which ends first, as in `gpufleet check dev | head -1`."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO

EXIT_OUTPUT_CLOSED = 141
"""128 + SIGPIPE: the status that a shell reports for `cat` or `grep` whose reader ended first."""


class OutputClosedError(SystemExit):
    """The reader of standard output has ended. It ends the command without a message; no `except Exception` or OSError stops it."""

    def __init__(self) -> None:
        super().__init__(EXIT_OUTPUT_CLOSED)


class ResultStream(io.TextIOWrapper):
    """Standard output: a write that no reader can receive ends the command with EXIT_OUTPUT_CLOSED."""

    def write(self, text: str) -> int:
        """Write a text; raise OutputClosedError if the reader has ended."""
        try:
            return super().write(text)
        except BrokenPipeError:
            raise self._closed() from None

    def flush(self) -> None:
        """Write what is buffered; raise OutputClosedError if the reader has ended."""
        try:
            super().flush()
        except BrokenPipeError:
            raise self._closed() from None

    def _closed(self) -> OutputClosedError:
        discard(self)
        return OutputClosedError()


class ProgressStream(io.TextIOWrapper):
    """Standard error: a write that no reader can receive is dropped, so that a command such as `up` still stores its result."""

    def write(self, text: str) -> int:
        """Write a text, or drop it if the reader has ended."""
        try:
            return super().write(text)
        except BrokenPipeError:
            discard(self)
            return len(text)

    def flush(self) -> None:
        """Write what is buffered, or drop it if the reader has ended."""
        try:
            super().flush()
        except BrokenPipeError:
            discard(self)


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
