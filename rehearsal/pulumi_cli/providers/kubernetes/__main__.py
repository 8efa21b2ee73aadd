"""Serves the Kubernetes provider as Pulumi starts it: python -m rehearsal.pulumi_cli.providers.kubernetes [ENGINE_ADDRESS]."""

from __future__ import annotations

import sys

from rehearsal.pulumi_cli.providers.light_imports import leave_the_sdk_out, quieten_grpc


def main() -> None:
    """Serve until the engine goes, or a signal says so."""
    quieten_grpc()
    # Before anything imports Pulumi's protocol.
    leave_the_sdk_out()
    from rehearsal.pulumi_cli.providers.kubernetes.provider import Kubernetes
    from rehearsal.pulumi_cli.providers.server import main as serve

    sys.exit(serve(Kubernetes, sys.argv[1:]))


if __name__ == "__main__":
    main()
