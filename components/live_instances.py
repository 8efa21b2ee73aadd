"""Live instances of a scale set: their provisioning states, read from Azure Resource Manager."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import aiohttp
import pulumi
from pulumi_azure_native import authorization

from components.errors import GpufleetError

InstanceReader = Callable[[str], Awaitable[Sequence[str]]]
"""Function that returns the provisioning states of a scale set's instances, one each, by the scale set's Azure id.

It raises UnreadableInstancesError unless it has read all of them.
"""
READ_INSTANCES = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read"
"""Azure action that the reader needs: https://learn.microsoft.com/azure/role-based-access-control/permissions/compute"""
API_VERSION = "2024-11-01"
"""https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-vms/list"""
PUBLIC_AZURE = "https://management.azure.com"
ENDPOINTS = "/metadata/endpoints?api-version=2022-09-01"
"""Path on the metadata host; azure-native reads its endpoints there, too."""
REQUEST_SECONDS = 60.0
RETRIES = 3
RETRIED = frozenset({408, 429, 500, 502, 503, 504})
LONGEST_DELAY = 120.0
"""Number of retries, HTTP statuses that are retried, and the longest delay in seconds, as in azure-native:
https://github.com/Azure/azure-sdk-for-go/blob/0f9d9f4df19f46db7ff7c6ea7d5a3034f09e737e/sdk/azcore/runtime/policy_retry.go"""
FIRST_DELAY = 4.0


class UnreadableInstancesError(GpufleetError):
    """Instances that could not be read completely: the reason and the remedy."""

    def __init__(self, why: str, remedy: str = "run the command again when Azure answers") -> None:
        self.why, self.remedy = why, remedy
        super().__init__(f"{why}; {remedy}")

    @classmethod
    def of_answer(cls, status: int, code: str, message: str) -> UnreadableInstancesError:
        """Return the error for an answer of Azure with an HTTP status, an error code and a message."""
        why = f"Azure answered {status} {code}: {' '.join(message.split()).rstrip('.')[:300]}"
        if status in (401, 403):
            return cls(why, f"give the account that runs pulumi the action {READ_INSTANCES}, which Owner, Contributor and Reader include")
        if status == 404:
            return cls(why, "if the scale set was deleted by hand, run pulumi refresh first")
        return cls(why)


class ArmInstances:
    """Instances in Azure Resource Manager, or in an embedded Azure that a metadata host names.

    token returns a token for Azure Resource Manager; metadata_host is a host with its port, "" for public Azure.
    """

    def __init__(self, token: Callable[[], Awaitable[str]], metadata_host: str = "") -> None:
        self._token = token
        self._metadata_host = metadata_host.removeprefix("https://").rstrip("/")

    async def __call__(self, scale_set_id: str) -> list[str]:
        """Return the states of all instances; UnreadableInstancesError."""
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            manager = await self._manager(session)
            headers = {"Authorization": f"Bearer {await self._token()}"}
            url = f"{manager}{scale_set_id}/virtualMachines?api-version={API_VERSION}"
            states: list[str] = []
            read: set[str] = set()
            while url:
                # A link to another host would send the token there.
                if url in read or not url.startswith(f"{manager}/"):
                    raise UnreadableInstancesError(f"Azure returned an invalid link to the next page of instances of {scale_set_id}")
                read.add(url)
                page = await _get(session, url, headers)
                states += _states(page, scale_set_id)
                url = page.get("nextLink") or ""
            return states

    async def _manager(self, session: aiohttp.ClientSession) -> str:
        """Return the base URL of the resource manager."""
        if not self._metadata_host:
            return PUBLIC_AZURE
        url = f"https://{self._metadata_host}{ENDPOINTS}"
        manager = (await _get(session, url, {})).get("resourceManager")
        if not isinstance(manager, str):
            raise UnreadableInstancesError(f"{url} names no resource manager", "correct ARM_METADATA_HOST")
        return manager.rstrip("/")


def deployer_instances(provider: pulumi.ProviderResource) -> ArmInstances:
    """Return a reader that signs in as the Azure provider does, and uses the same endpoint (ARM_METADATA_HOST)."""

    async def token() -> str:
        try:
            found = await authorization.get_client_token_output(opts=pulumi.InvokeOutputOptions(provider=provider)).token.future()
        except Exception as error:
            raise UnreadableInstancesError(f"signing in to Azure failed: {error}", "sign in, for example with az login") from error
        if not found:
            raise UnreadableInstancesError("the Azure provider returned no token", "sign in, for example with az login")
        return str(found)

    return ArmInstances(token, os.environ.get("ARM_METADATA_HOST", ""))


async def _get(session: aiohttp.ClientSession, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON object at a URL, after at most RETRIES retries; UnreadableInstancesError."""
    for attempt in range(RETRIES + 1):
        delay = FIRST_DELAY * 2**attempt
        try:
            async with session.get(url, headers=headers) as response:
                status, content = response.status, await response.read()
                retry_after = response.headers.get("Retry-After", "")
        except (aiohttp.ClientError, TimeoutError) as error:
            if attempt == RETRIES:
                raise UnreadableInstancesError(f"{url} cannot be reached: {str(error) or type(error).__name__}") from error
        else:
            if status == 200:
                return _object(content, url)
            delay = float(retry_after) if retry_after.isdecimal() else delay
            if status not in RETRIED or attempt == RETRIES or delay > LONGEST_DELAY:
                raise UnreadableInstancesError.of_answer(status, *_error(content))
        await asyncio.sleep(delay)
    raise AssertionError("the last attempt returns or raises")


def _object(content: bytes, url: str) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UnreadableInstancesError(f"the answer of {url} is not a JSON object")
    return found


def _error(content: bytes) -> tuple[str, str]:
    """Return code and message of an error's body; the beginning of a body of another form as its message."""
    try:
        error = json.loads(content)["error"]
        return str(error["code"]), str(error["message"])
    except (ValueError, LookupError, TypeError):
        return "without an error code", content[:200].decode(errors="replace")


def _states(page: Mapping[str, Any], scale_set_id: str) -> list[str]:
    """Return the states of one page; UnreadableInstancesError where an instance has none."""
    try:
        states = [item["properties"]["provisioningState"] for item in page["value"]]
    except (LookupError, TypeError):
        states = [None]
    if not all(isinstance(state, str) for state in states):
        raise UnreadableInstancesError(f"Azure listed instances of {scale_set_id} without their provisioning states")
    return states
