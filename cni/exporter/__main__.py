"""Starts the exporter as `python3 -m cni.exporter`, as its container does."""

from __future__ import annotations

from cni.exporter.program import main

main()
