"""The same resources written bare: one call of the SDK each, their inputs ready beforehand; it tells what that cost."""

from __future__ import annotations

from bench.bare import program, steps
from bench.engine_programs.told import recorded, told_at_the_end

register = program(steps(recorded(), dependencies=True))
told_at_the_end()
register()
