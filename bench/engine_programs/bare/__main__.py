"""The same resources written bare: one call of the SDK each, their inputs ready beforehand; it tells what that cost."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

from bench.bare import program, steps
from bench.engine_programs.told import told_at_the_end

GRAPH_FILE = "GPUFLEET_BENCH_GRAPH"

graph = pickle.loads(Path(os.environ[GRAPH_FILE]).read_bytes())  # noqa: S301 (the bench has just written it)
register = program(steps(graph, dependencies=True))
told_at_the_end()
register()
