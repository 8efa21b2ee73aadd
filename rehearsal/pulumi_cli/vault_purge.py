"""Program that purges deleted vaults through Azure's own client, in the hub namespace."""

from __future__ import annotations

import os
import sys

from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.keyvault import KeyVaultManagementClient

from rehearsal.arm.official_clients import credential, options


def main(subscription: str, location: str, *names: str) -> None:
    """Purge those of the named vaults that are deleted, and print their names; exit with Azure's message where it rejects one."""
    base, authority = f"https://{os.environ['ARM_METADATA_HOST']}", os.environ["SSL_CERT_FILE"]
    account = credential(base, authority, os.environ["ARM_TENANT_ID"], os.environ["ARM_CLIENT_ID"], os.environ["ARM_CLIENT_SECRET"])
    vaults = KeyVaultManagementClient(account, subscription, **options(base, authority)).vaults
    failure = ""
    for name in names:
        try:
            vaults.get_deleted(name, location)
            vaults.begin_purge_deleted(name, location).result()
            print(name, flush=True)
        except ResourceNotFoundError:
            continue
        except HttpResponseError as error:
            failure = f"{name}: {error.message}"
    sys.exit(failure or 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
