"""Writes down what a program's own work cost its process: CPU seconds from a moment after the imports to the end."""

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
    """The graph that the bench has recorded, with the SDK's modules for it imported, which the SDK does late, in the midst of the work."""
    graph: Graph = pickle.loads(Path(os.environ[GRAPH_FILE]).read_bytes())  # noqa: S301 (the bench has just written it)
    for module in {item.type.split(":")[1] for item in graph if item.type.startswith(AZURE)}:
        importlib.import_module(f"pulumi_azure_native.{module}")
    return graph


def write_cpu_at_exit() -> None:
    """Count from now on."""
    began = time.process_time()
    atexit.register(lambda: Path(os.environ[CPU_FILE]).write_text(str(time.process_time() - began)))
