"""Runs a hub namespace until standard input ends: `hub_holder_process.py REGION FOLDER`; prints lines of JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rehearsal.local_cluster.hub.hub_network import hub_namespace
from stacks.load import load_plan


def main() -> None:
    def send(**message: object) -> None:
        print(json.dumps(message), flush=True)

    with hub_namespace(load_plan(sys.argv[1]), Path(sys.argv[2]), say=lambda text: send(say=text)) as namespace:
        send(command=namespace.command, environment=namespace.environment)
        sys.stdin.read()


if __name__ == "__main__":
    main()
