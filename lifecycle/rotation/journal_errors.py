"""Errors of the journal of a rotation and of its stores."""

from __future__ import annotations

from components.errors import GpufleetError


class JournalCorruptError(GpufleetError):
    """A journal that cannot be trusted: place (file or blob, byte offset), record number from 0 if it is known, reason and remedy."""

    def __init__(self, place: str, record: int | None, reason: str, remedy: str) -> None:
        where = "the journal" if record is None else f"record {record} of the journal"
        super().__init__(f"{place}: {where}: {reason}. Nothing was started. {remedy}")
        self.place, self.record, self.reason, self.remedy = place, record, reason, remedy


class JournalExistsError(GpufleetError):
    """A new journal was to be created where one exists."""

    def __init__(self, place: str) -> None:
        super().__init__(f"{place} exists, and a journal is never overwritten: continue that run, or give the new run another name")


class JournalMissingError(GpufleetError):
    """A journal was to be opened where none exists."""

    def __init__(self, place: str) -> None:
        super().__init__(f"{place}: there is no journal: check the name of the run, or start a new run")


class JournalReadError(GpufleetError):
    """A journal that exists but cannot be read."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: the journal cannot be read ({reason}): name a file that this user may read")


class JournalEmptyError(GpufleetError):
    """A journal without a complete first record: its run ended before it did anything."""

    def __init__(self, place: str) -> None:
        super().__init__(f"{place} contains no complete record, so its run changed no node: start the run again under this name")


class JournalHeldError(GpufleetError):
    """Another process writes the journal."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: another process writes this journal ({reason}): wait until it ends, or end it")


class JournalLeaseLostError(GpufleetError):
    """This process may no longer write the journal, and must not act: another process may have taken over."""

    exit_status = 1

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: this process no longer holds the journal ({reason}): it stops before its next action; continue the run")


class JournalWriteError(GpufleetError):
    """A record was not written; the action that it announces must not start."""

    exit_status = 1

    def __init__(self, place: str, reason: str, remedy: str) -> None:
        super().__init__(f"{place}: the record was not written ({reason}), and its actions were not started: {remedy}")


class JournalOrderError(GpufleetError):
    """A record or transition that the journal's rules do not allow at this point; it was not written."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the journal does not accept the record: {reason}; it was not written, and its actions were not started")
