"""Azure's scale sets and machines of a cluster: complete readings or none, without retries of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError
from azure.core.rest import HttpRequest
from azure.mgmt.compute import ComputeManagementClient

from services.csr_approver.approval_loop import ServiceUnreachableError
from services.csr_approver.verdicts import Instance

RESOURCE_MANAGER = "https://management.azure.com"
NETWORK_API_VERSION = "2018-10-01"
"""The only version in which Azure lists a Uniform scale set's network interfaces:
https://learn.microsoft.com/dotnet/api/azure.resourcemanager.network.mocking.mockablenetworkresourcegroupresource.getvirtualmachinescalesetnetworkinterfaces
"""
MOST_PAGES = 200
"""Maximum number of pages of one list; a scale set has at most 1,000 machines."""
CONNECT_SECONDS = 10
READ_SECONDS = 60
REASON_CHARACTERS = 200
NOT_FOUND = 404
OK = 200

Json = dict[str, Any]


def unreachable_error(error: AzureError) -> ServiceUnreachableError:
    """Build the error of a failed request, with Azure's Retry-After."""
    response = error.response if isinstance(error, HttpResponseError) else None
    if response is None:
        return ServiceUnreachableError(
            f"{type(error).__name__}: {str(error).splitlines()[0][:REASON_CHARACTERS]}" if str(error) else type(error).__name__
        )
    after = str(getattr(response, "headers", {}).get("Retry-After", ""))
    return ServiceUnreachableError(f"HTTP {response.status_code}", float(after) if after.isdecimal() else None)


def primary_address(interface: Json) -> str | None:
    """Return the address of an interface's primary configuration; the others are those of pods."""
    for configuration in interface["properties"]["ipConfigurations"]:
        if configuration["properties"].get("primary"):
            return str(configuration["properties"]["privateIPAddress"])
    return None


class AzureScaleSets:
    """The scale sets of one resource group whose names begin with a prefix."""

    def __init__(
        self,
        credential: TokenCredential,
        subscription: str,
        resource_group: str,
        prefix: str,
        base_url: str = RESOURCE_MANAGER,
        **transport: Any,
    ) -> None:
        self._group, self._prefix, self._base = resource_group, prefix, base_url
        self._path = f"{base_url}/subscriptions/{subscription}/resourceGroups/{resource_group}/providers/Microsoft.Compute"
        self._client = ComputeManagementClient(
            credential,
            subscription,
            base_url=base_url,
            credential_scopes=[f"{RESOURCE_MANAGER}/.default"],
            # Retries inside the client would bypass the limit on queries.
            retry_total=0,
            connection_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            **transport,
        )

    def scale_sets(self) -> frozenset[str]:
        """Return the names of the scale sets; ServiceUnreachableError where the list is incomplete."""
        try:
            listed = self._client.virtual_machine_scale_sets.list(self._group)
            return frozenset(item.name for item in listed if item.name and item.name.startswith(self._prefix))
        except AzureError as error:
            raise unreachable_error(error) from error

    def instances(self, scale_set: str) -> tuple[Instance, ...]:
        """Return the machines of one scale set with the primary addresses of their NICs; ServiceUnreachableError where either list is
        incomplete."""
        try:
            machines = list(self._client.virtual_machine_scale_set_vms.list(self._group, scale_set))
            addresses = self._addresses(scale_set) if machines else {}
        except ResourceNotFoundError:
            return ()
        except AzureError as error:
            raise unreachable_error(error) from error
        except (KeyError, TypeError, ValueError) as error:
            raise ServiceUnreachableError(f"an unreadable response: {type(error).__name__} {error}") from error
        return tuple(
            Instance(
                name=str(machine.os_profile.computer_name).lower(),
                addresses=frozenset(addresses.get(str(machine.instance_id), ())),
                state=str(machine.provisioning_state).lower(),
                vm_id=str(machine.vm_id or "").lower(),
            )
            for machine in machines
            if machine.os_profile is not None
        )

    def _addresses(self, scale_set: str) -> dict[str, set[str]]:
        """Return the primary addresses of every interface by the machine's instance id."""
        found: dict[str, set[str]] = defaultdict(set)
        for interface in self._interfaces(f"{self._path}/virtualMachineScaleSets/{scale_set}/networkInterfaces"):
            machine = str(interface["properties"]["virtualMachine"]["id"]).rpartition("/")[2]
            address = primary_address(interface)
            if address is not None:
                found[machine].add(address)
        return found

    def _interfaces(self, url: str) -> Iterator[Json]:
        """Yield every network interface of a list in pages."""
        following = f"{url}?api-version={NETWORK_API_VERSION}"
        for _ in range(MOST_PAGES):
            response = self._client.send_request(HttpRequest("GET", following))
            if response.status_code == NOT_FOUND:
                return
            if response.status_code != OK:
                raise HttpResponseError(response=response)
            page = response.json()
            yield from page["value"]
            following = page.get("nextLink") or ""
            if not following:
                return
            if not following.startswith(f"{self._base}/"):
                # The token must not go to another host.
                raise ValueError("the next page is on another host")
        raise ValueError(f"more than {MOST_PAGES} pages")
