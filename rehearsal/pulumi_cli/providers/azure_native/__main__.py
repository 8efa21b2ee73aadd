"""Runs azure-native as Pulumi's engine starts it: `python -m rehearsal.pulumi_cli.providers.azure_native [ENGINE_ADDRESS]`."""

from __future__ import annotations

import sys

from rehearsal.pulumi_cli.providers.light_imports import leave_the_sdk_out, quieten_grpc


def main() -> None:
    """Print the port, and serve until the engine has gone or a signal says so."""
    quieten_grpc()
    leave_the_sdk_out()
    # What these import must not bring Pulumi's SDK with it.
    from rehearsal.pulumi_cli.providers.azure_native.provider import AzureNative
    from rehearsal.pulumi_cli.providers.server import main as serve

    sys.exit(serve(AzureNative, sys.argv[1:]))


if __name__ == "__main__":
    main()
