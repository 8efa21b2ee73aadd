"""Purges deleted vaults by name, from inside the hub's network, as a person does with Azure's own client."""

from __future__ import annotations

import os
import sys

from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.keyvault import KeyVaultManagementClient

from rehearsal.arm.official_clients import credential, options


def main(subscription: str, location: str, *names: str) -> None:
    """Purge those that are deleted ones, a line with the name of each; exit with Azure's sentence where it refuses one."""
    base, authority = f"https://{os.environ['ARM_METADATA_HOST']}", os.environ["SSL_CERT_FILE"]
    who = credential(base, authority, os.environ["ARM_TENANT_ID"], os.environ["ARM_CLIENT_ID"], os.environ["ARM_CLIENT_SECRET"])
    vaults = KeyVaultManagementClient(who, subscription, **options(base, authority)).vaults
    refused = ""
    for name in names:
        try:
            vaults.get_deleted(name, location)
            vaults.begin_purge_deleted(name, location).result()
            print(name, flush=True)
        except ResourceNotFoundError:
            continue
        except HttpResponseError as error:
            refused = f"{name}: {error.message}"
    sys.exit(refused or 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
