"""Entry point of `python3 -m cni.exporter`, which the container runs."""

from __future__ import annotations

from cni.exporter.program import main

main()
