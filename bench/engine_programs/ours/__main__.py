"""The program of the repository, which tells what it cost."""

from __future__ import annotations

import pulumi

from bench.engine_programs.told import recorded, told_at_the_end
from stacks.__main__ import run
from stacks.program import collect_rarely

# Held, as the bare program holds it.
graph = recorded()
told_at_the_end()
collect_rarely()
run(pulumi.get_stack())
