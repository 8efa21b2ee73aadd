"""Draws that depend only on a seed and a key, so that a machine has the same luck in whatever order machines are rotated."""

from __future__ import annotations

import math
import zlib
from functools import lru_cache
from statistics import NormalDist

from rehearsal.azure.durations import Duration

_MASK = 2**64 - 1
_LEAST = 2.0**-57
_NORMAL = NormalDist()


@lru_cache(maxsize=256)
def _stream(name: str) -> int:
    return zlib.crc32(name.encode())


class Draws:
    """Draws of one seed. A draw is identified by its name and up to two numbers, such as a machine and an attempt."""

    def __init__(self, seed: int) -> None:
        self._seed = seed & _MASK

    def uniform(self, name: str, item: int, attempt: int = 0) -> float:
        """Return a number of at least 0 and less than 1: splitmix64 of the key, https://prng.di.unimi.it/splitmix64.c"""
        value = self._seed
        for part in (_stream(name), item, attempt):
            value = (value + part + 0x9E3779B97F4A7C15) & _MASK
            value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
            value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
            value ^= value >> 31
        return (value >> 11) / 2**53

    def seconds(self, duration: Duration, name: str, item: int, attempt: int = 0) -> int:
        """Return the whole seconds of one draw of a duration, at least one, rounded up."""
        median = duration.median_seconds
        if duration.sigma and median:
            median *= math.exp(duration.sigma * _NORMAL.inv_cdf(max(self.uniform(name, item, attempt), _LEAST)))
        return max(1, math.ceil(median))
