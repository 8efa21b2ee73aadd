"""Decides what is told of a rule whose counter is set to 0 behind the exporter's back: it goes on from where it was."""

from __future__ import annotations

from collections.abc import Mapping

Counts = tuple[int, int]
"""Packets and bytes."""


class RuleTotals:
    """Counts of every marked rule by chain and name, since the exporter first saw it."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, str], Counts] = {}
        self.total: dict[tuple[str, str], Counts] = {}
        self.resets = 0

    def count(self, counts: Mapping[tuple[str, str], Counts]) -> None:
        """Add what each rule's counter has gained; one that is smaller than before was set to 0 in between, and has gained it all.

        A rule that is gone keeps its total, and begins at 0 when it is back.
        """
        for rule, now in counts.items():
            last = self.seen.get(rule, (0, 0))
            if now[0] < last[0] or now[1] < last[1]:
                self.resets += 1
                last = (0, 0)
            total = self.total.get(rule, (0, 0))
            self.total[rule] = (total[0] + now[0] - last[0], total[1] + now[1] - last[1])
            self.seen[rule] = now
