"""Decides when an answer of the metadata service is taken: one with less than was expected may be half of one that is still to come."""

from __future__ import annotations

from cni.node.machine import Machine

REPEATS = 5
"""How many times in a row a smaller answer must be the same before it is taken."""


class MetadataTrust:
    """What the machine is held to be, from the answers heard so far.

    An answer is taken at once when it has the addresses that were taken last and as many as planned, or is what was taken last; any other,
    and any with another card or own address, when it was heard SETTLED times in a row. Nothing wrong or empty gets here: imds refuses it.
    """

    def __init__(self, planned: int, last: Machine | None) -> None:
        self.planned = planned
        self.taken = last
        self._heard: Machine | None = None
        self._times = 0

    def hear(self, answer: Machine) -> bool:
        """Takes in one answer; whether taken is now what it says."""
        self._times = self._times + 1 if answer == self._heard else 1
        self._heard = answer
        if answer == self.taken or self._complete(answer) or self._times >= REPEATS:
            self.taken = answer
        return answer == self.taken

    def _complete(self, answer: Machine) -> bool:
        if len(answer.secondaries) < self.planned:
            return False
        last = self.taken
        return last is None or (_card(answer) == _card(last) and set(answer.secondaries) >= set(last.secondaries))

    def warnings(self) -> list[str]:
        """What a person should know of what was taken, one line each."""
        has = 0 if self.taken is None else len(self.taken.secondaries)
        if self.taken is None or has >= self.planned:
            return []
        what = f"network card {self.taken.interface} has {has} addresses for pods; planned are {self.planned}"
        return [f"{what}; the node takes fewer pods; compare the scale set's ipConfigurations with the region file"]


def _card(machine: Machine) -> tuple[str, str, str, int]:
    return machine.interface, machine.mac, machine.primary, machine.prefix_length
