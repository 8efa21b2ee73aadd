"""Program of the azure-native provider; Pulumi's engine starts it with its own address as the argument."""

from __future__ import annotations

from rehearsal.pulumi_cli.providers.start import run_provider

if __name__ == "__main__":
    run_provider("rehearsal.pulumi_cli.providers.azure_native.provider", "AzureNative")
