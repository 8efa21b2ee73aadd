"""Operations of the pinned official clients: method, path, API version, and the statuses that each client accepts.

The clients are generated, and their source has one form: a function build_GROUP_OPERATION_request with the URL, and a method that compares
the status of the response. https://github.com/Azure/azure-sdk-for-python
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

CLIENTS = (
    "azure.mgmt.compute",
    "azure.mgmt.network",
    "azure.mgmt.storage",
    "azure.mgmt.keyvault",
    "azure.mgmt.msi.v2024_11_30",
    "azure.mgmt.privatedns",
    "azure.mgmt.dnsresolver",
    "azure.mgmt.imagebuilder",
    "azure.mgmt.resource.resources",
    "azure.mgmt.authorization.v2022_04_01",
)
_BUILDER = re.compile(r"^def build_(\w+)_request\((.*?)(?=^def |^class |\Z)", re.MULTILINE | re.DOTALL)
_CLASS = re.compile(r"^class _?(\w+?)Operations(?:Mixin)?\b(.*?)(?=^class |^def |\Z)", re.MULTILINE | re.DOTALL)
_METHOD = re.compile(r"^    def (\w+)\((.*?)(?=^    def |\Z)", re.MULTILINE | re.DOTALL)
_URL = re.compile(r'_url = (?:kwargs\.pop\(|\()?\s*(?:"template_url",\s*)?"([^"]+)"')
_VERB = re.compile(r'method="(\w+)"')
_VERSION = re.compile(r'_params\.pop\("api-version", "([^"]+)"\)')
_CALL = re.compile(r"\bbuild_(\w+)_request\(")
_STATUSES = re.compile(r"status_code not in \[([\d, ]+)\]")
_PARAMETER = re.compile(r"\{[^}]*\}")


@dataclass(frozen=True)
class ClientOperation:
    """One operation of a client: `LoadBalancers_CreateOrUpdate` is PUT to a path with parameters in braces."""

    id: str
    method: str
    path: str
    version: str
    statuses: frozenset[int]


@cache
def client_operations() -> tuple[ClientOperation, ...]:
    """Return the operations of all pinned clients."""
    return tuple(operation for client in CLIENTS for file in _sources(client) for operation in _operations(file.read_text()))


def find_operation(operation_id: str, method: str = "", path: str = "") -> ClientOperation | None:
    """Return the operation of an id; ids of other clients differ in places, so that of the same method and path if they are known."""
    by_id = _by_id().get(plain_id(operation_id))
    if not path or (by_id is not None and (by_id.method, path_form(by_id.path)) == (method, path_form(path))):
        return by_id
    return _by_path().get((method, path_form(path)), by_id)


@cache
def _by_id() -> dict[str, ClientOperation]:
    return {one.id: one for one in reversed(client_operations())}


@cache
def _by_path() -> dict[tuple[str, str], ClientOperation]:
    return {(one.method, path_form(one.path)): one for one in reversed(client_operations())}


def plain_id(operation_id: str) -> str:
    """Return an operation id in the form in which ids are compared: lower case without underscores."""
    return operation_id.replace("_", "").lower()


def path_form(path: str) -> str:
    """Return a path in the form in which paths are compared, which is independent of the names of its parameters."""
    return _PARAMETER.sub("{}", path.partition("?")[0]).lower().strip("/")


def _sources(client: str) -> list[Path]:
    spec = find_spec(f"{client}.operations")
    if spec is None or not spec.submodule_search_locations:
        return []
    return [file for file in sorted(Path(spec.submodule_search_locations[0]).glob("*.py")) if file.name not in ("__init__.py", "_patch.py")]


def _operations(source: str) -> Iterator[ClientOperation]:
    builders = {found[1]: found[2] for found in _BUILDER.finditer(source)}
    for group in _CLASS.finditer(source):
        for method in _METHOD.finditer(group[2]):
            call, statuses = _CALL.search(method[2]), _STATUSES.search(method[2])
            if call is None or statuses is None or call[1] not in builders:
                continue
            text = builders[call[1]]
            url, verb, version = _URL.search(text), _VERB.search(text), _VERSION.search(text)
            if url and verb and version:
                name = method[1].removeprefix("_").removesuffix("_initial")
                accepted = frozenset(int(one) for one in statuses[1].split(","))
                yield ClientOperation(plain_id(f"{group[1]}_{name}"), verb[1], url[1], version[1], accepted)
