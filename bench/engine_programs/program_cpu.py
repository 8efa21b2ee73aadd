"""CPU seconds of a program's own work, from after its imports to its end, written to a file."""

from __future__ import annotations

import atexit
import importlib
import os
import pickle
import time
from pathlib import Path

from rehearsal.azure.azure_native_ids import AZURE
from rehearsal.program.graph import Graph

CPU_FILE, GRAPH_FILE = "GPUFLEET_BENCH_CPU", "GPUFLEET_BENCH_GRAPH"


def recorded_graph() -> Graph:
    """Return the recorded graph, and import the SDK's modules for it, which the SDK would import late."""
    graph: Graph = pickle.loads(Path(os.environ[GRAPH_FILE]).read_bytes())  # noqa: S301 (the bench has just written it)
    for module in {item.type.split(":")[1] for item in graph if item.type.startswith(AZURE)}:
        importlib.import_module(f"pulumi_azure_native.{module}")
    return graph


def write_cpu_at_exit() -> None:
    """Start counting, and write the CPU seconds at exit."""
    began = time.process_time()
    atexit.register(lambda: Path(os.environ[CPU_FILE]).write_text(str(time.process_time() - began)))
