"""What to ask Azure next, and when: one question at a time, at a bounded rate, whatever is asked of us."""

from __future__ import annotations

from services.csr_approver.approver import Instance, Instances, ScaleSets

QUESTION_SPACING_SECONDS = 2.0
"""Least time between two questions: 30 a minute, of the 360 lists a minute that a subscription has for all that look at its scale sets.

https://learn.microsoft.com/azure/virtual-machines/compute-throttling-limits
"""
REPEAT_SECONDS = 15.0
"""Least time between two readings of one scale set, and between two of the list of scale sets."""
LONGEST_BACK_OFF_SECONDS = 300.0


class InstanceCache:
    """Azure's last answers, and the questions that decisions wait for.

    A scale set is asked about only if Azure listed it, so that invented names cost at most readings of the list. Times in seconds.
    """

    def __init__(self) -> None:
        self.sets: ScaleSets | None = None
        self._instances: dict[str, Instances] = {}
        self._wanted: dict[str, float] = {}
        self._sets_wanted: float | None = None
        self._asked: dict[str | None, float] = {}
        self._not_before = float("-inf")
        self._failures = 0

    def instances(self, scale_set: str) -> Instances | None:
        """Last reading of a scale set."""
        return self._instances.get(scale_set)

    def want(self, scale_set: str, after: float) -> None:
        """Have the scale set read by a reading that begins at or after `after`; the list of scale sets first, if it does not name it."""
        if self.sets is None or scale_set not in self.sets.names:
            self._sets_wanted = max(after, self._sets_wanted or after)
        else:
            self._wanted[scale_set] = max(after, self._wanted.get(scale_set, after))

    def question(self, now: float) -> tuple[bool, str | None]:
        """Whether to ask now, and what: a scale set, or None for the list; of several the one asked about longest ago.

        The question counts as asked from this call on.
        """
        if now < self._not_before:
            return False, None
        candidates: list[str | None] = list(self._wanted)
        if self._sets_wanted is not None:
            candidates.append(None)
        ready = [name for name in candidates if now - self._asked.get(name, float("-inf")) >= REPEAT_SECONDS]
        if not ready:
            return False, None
        chosen = min(ready, key=lambda name: (self._asked.get(name, float("-inf")), name or ""))
        self._asked[chosen] = now
        self._not_before = now + QUESTION_SPACING_SECONDS
        return True, chosen

    def keep_sets(self, names: frozenset[str], read_at: float) -> None:
        """Take Azure's answer to the question for the list, asked at read_at; what is no longer listed is forgotten."""
        self._failures = 0
        self.sets = ScaleSets(read_at, names)
        if self._sets_wanted is not None and self._sets_wanted <= read_at:
            self._sets_wanted = None
        for mapping in (self._instances, self._wanted):
            for gone in set(mapping) - names:
                del mapping[gone]
        self._asked = {name: at for name, at in self._asked.items() if name is None or name in names}

    def keep_instances(self, scale_set: str, machines: tuple[Instance, ...], read_at: float) -> None:
        """Take Azure's answer to the question for a scale set, asked at read_at."""
        self._failures = 0
        self._instances[scale_set] = Instances(read_at, {machine.name: machine for machine in machines})
        if self._wanted.get(scale_set, read_at + 1) <= read_at:
            del self._wanted[scale_set]

    def failed(self, now: float, retry_after: float | None) -> float:
        """Azure gave no answer: ask nothing for as long as it said, or for twice as long as last time; returns that time."""
        self._failures += 1
        doubled = QUESTION_SPACING_SECONDS * float(1 << min(self._failures, 10))
        pause = min(max(doubled, retry_after or 0.0), LONGEST_BACK_OFF_SECONDS)
        self._not_before = now + pause
        return pause
