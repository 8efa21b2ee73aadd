"""Program of the repository, which writes its CPU seconds."""

from __future__ import annotations

import pulumi

from bench.engine_programs.program_cpu import recorded_graph, write_cpu_at_exit
from stacks.__main__ import run
from stacks.program import collect_rarely

# Held, as the bare program holds it.
graph = recorded_graph()
write_cpu_at_exit()
collect_rarely()
run(pulumi.get_stack())
