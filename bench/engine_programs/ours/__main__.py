"""The program of the repository, which tells what it cost."""

from __future__ import annotations

import pulumi

from bench.engine_programs.told import told_at_the_end
from stacks.__main__ import run

told_at_the_end()
run(pulumi.get_stack())
