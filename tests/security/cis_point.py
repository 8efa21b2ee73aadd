"""One point of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass

from cis_rendered import Check

MET, DEVIATES, NOT_APPLICABLE = "met", "deviates", "not applicable"
LIVE = "tests/rehearsal/local_cluster/test_benchmark_live.py"


@dataclass(frozen=True)
class Point:
    """One point: how says by which flag or file it is met, or why it is not.

    checks run on what is rendered, live names a test on servers.
    """

    number: str
    what: str
    state: str
    how: str
    checks: tuple[Check, ...] = ()
    live: str | None = None

    @property
    def test(self) -> str:
        """Tests of the point, for the document."""
        result = [f"`test_cis.py[{self.number}]`"] if self.checks else []
        return "; ".join(result + ([f"live: `{self.live}`"] if self.live else [])) or "none: nothing to look at"
