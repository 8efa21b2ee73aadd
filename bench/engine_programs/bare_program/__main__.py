"""Program that registers the recorded resources with one SDK call each, and writes its CPU seconds."""

from __future__ import annotations

from bench.bare_program import program, steps
from bench.engine_programs.program_cpu import recorded_graph, write_cpu_at_exit

register = program(steps(recorded_graph(), dependencies=True))
write_cpu_at_exit()
register()
