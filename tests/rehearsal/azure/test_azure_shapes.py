"""The shapes read out of the official clients' models know all that Azure's published types have."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from azure_types import READ_ONLY, REQUIRED, TypeFile, UnknownResourceTypeError
from published import needs_published_types, published_types

from rehearsal.azure.azure_native_bodies import arm_type
from rehearsal.azure.azure_native_ids import GROUP_PATHS, SCOPE_PATHS
from rehearsal.azure.registry import RESOURCE_TYPES
from rehearsal.azure.sdk_shapes import MODELS, WITHOUT_CLIENT, UnknownShapeError, shape_of
from rehearsal.azure.shapes import Choice, ListOf, MapOf, ObjectOf, OneOf, Plain, Property, Shape

UNPUBLISHED = {
    "Microsoft.Compute/diskEncryptionSets",
    "Microsoft.Compute/disks",
    "Microsoft.Network/dnsResolvers",
    "Microsoft.Network/dnsResolvers/inboundEndpoints",
    "Microsoft.Resources/resourceGroups",
}
"""Types for which the folder of published types has no file."""
OPTIONAL_IN_MODELS = {"audiences", "issuer", "subject", "domainGuid", "domainName"}
"""Properties required by the published version but not by the clients' newer one: federated credentials, and directories of file shares."""
SENT_BACK = {"etag", "name", "provisioningState", "type"}
"""Properties that some published types let a caller send although Azure sets them."""
SIMPLE = {"StringType": (Plain.STRING, Plain.MOMENT), "IntegerType": (Plain.INTEGER, Plain.NUMBER), "BooleanType": (Plain.BOOLEAN,)}


class Comparison:
    """Walks a published type and a shape side by side, each pair of them once."""

    def __init__(self, file: TypeFile) -> None:
        self.file = file
        self.seen: set[tuple[int, int]] = set()

    def faults(self, kind: dict[str, Any], shape: Shape, where: str) -> Iterator[str]:
        if shape is not Plain.ANYTHING and (id(kind), id(shape)) not in self.seen:
            self.seen.add((id(kind), id(shape)))
            yield from self.new_faults(kind, shape, where)

    def new_faults(self, kind: dict[str, Any], shape: Shape, where: str) -> Iterator[str]:
        match kind["$type"], shape:
            case "ObjectType", MapOf(item):
                yield from self.faults(self.file.at(kind["additionalProperties"]), item, f"{where}.*")
            case "ObjectType", ObjectOf():
                for name, held in kind["properties"].items():
                    yield from self.property_faults(held, shape.properties.get(name), f"{where}.{name}")
            case "DiscriminatedObjectType", OneOf():
                for value, reference in kind["elements"].items():
                    whole = {"$type": "ObjectType", "properties": {**kind["baseProperties"], **self.file.at(reference)["properties"]}}
                    yield from self.faults(whole, shape.variants[value], f"{where}<{value}>")
            case "ArrayType", ListOf(item):
                yield from self.faults(self.file.at(kind["itemType"]), item, f"{where}[]")
            case "UnionType", Choice(_, values, closed):
                literals = {entry["value"] for entry in map(self.file.at, kind["elements"]) if entry["$type"] == "StringLiteralType"}
                if closed and not literals <= set(values):
                    yield f"{where}: no {sorted(literals - set(values))} among {values}"
            case ("StringLiteralType" | "UnionType", Plain.STRING) | ("StringLiteralType" | "StringType", Choice()):
                return
            case told, _:
                if shape not in SIMPLE.get(told, ()):
                    yield f"{where}: {told} is {shape}"

    def property_faults(self, held: dict[str, Any], known: Property | None, where: str) -> Iterator[str]:
        name = where.rpartition(".")[2]
        if known is None:
            yield f"{where}: unknown"
            return
        only_answered, asked_for = bool(held["flags"] & READ_ONLY), bool(held["flags"] & REQUIRED)
        if only_answered:
            return
        if known.read_only and name not in SENT_BACK:
            yield f"{where}: read-only, but published as writable"
        if known.required != asked_for and name not in {"name", *OPTIONAL_IN_MODELS}:
            yield f"{where}: required is {known.required}, but published as {asked_for}"
        yield from self.faults(self.file.at(held["type"]), known.shape, where)


def published_faults(resource_type: str, version: str) -> list[str]:
    file, body = published_types().body_of(resource_type, version)
    # The version stands in the address of a request and in no body.
    properties = {name: held for name, held in body["properties"].items() if name != "apiVersion"}
    return list(Comparison(file).faults({**body, "properties": properties}, shape_of(resource_type), resource_type))


@needs_published_types
@pytest.mark.parametrize("resource_type", sorted(set(MODELS) - UNPUBLISHED))
def test_a_shape_has_every_published_property_with_its_type(resource_type: str) -> None:
    assert published_faults(resource_type, "") == []


@needs_published_types
@pytest.mark.parametrize(
    "resource_type", sorted(name for name in set(MODELS) - UNPUBLISHED if name.startswith("Microsoft.Compute/") and "galleries" not in name)
)
def test_a_compute_shape_has_every_property_of_the_version_that_the_client_sends(resource_type: str) -> None:
    assert published_faults(resource_type, "2026-04-01") == []


@needs_published_types
@pytest.mark.parametrize("resource_type", sorted(UNPUBLISHED))
def test_what_is_called_unpublished_is_so(resource_type: str) -> None:
    with pytest.raises(UnknownResourceTypeError):
        published_faults(resource_type, "")


def test_every_type_with_a_path_has_a_shape() -> None:
    types = {arm_type(name) for name in (*GROUP_PATHS, *SCOPE_PATHS)}
    assert types <= {*MODELS, *WITHOUT_CLIENT}


def test_every_type_that_a_client_can_put_has_a_shape() -> None:
    for kind in RESOURCE_TYPES:
        if not kind.virtual and "/locations/" not in kind.type:
            assert shape_of(kind.type).properties, kind.type


def test_a_type_in_other_capitals_has_the_same_shape() -> None:
    assert shape_of("MICROSOFT.network/VirtualNetworks").name == "VirtualNetwork"


def test_an_unknown_type_has_no_shape() -> None:
    with pytest.raises(UnknownShapeError, match=r"Microsoft\.Batch/batchAccounts has no model"):
        shape_of("Microsoft.Batch/batchAccounts")


def test_azures_types_refer_to_each_other_in_circles_and_are_read_all_the_same() -> None:
    subnet = shape_of("Microsoft.Network/virtualNetworks/subnets")
    groups = at(subnet, "properties", "networkSecurityGroup", "properties", "subnets")
    assert isinstance(groups, ListOf)
    assert isinstance(groups.item, ObjectOf)
    assert groups.item.name == "Subnet"


def test_a_resource_group_needs_no_compute_client() -> None:
    program = "import sys\nfrom rehearsal.azure.sdk_shapes import shape_of\nshape_of('Microsoft.Resources/resourceGroups').properties\n"
    program += "print(*sorted(name for name in sys.modules if name in ('azure.mgmt.compute', 'azure.mgmt.network')))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == ""


def at(shape: Shape, *path: str) -> Shape:
    for step in path:
        assert isinstance(shape, ObjectOf)
        shape = shape.properties[step].shape
    return shape


def test_what_only_azure_sets_is_read_only() -> None:
    machine = at(shape_of("Microsoft.Compute/virtualMachines"), "properties")
    assert isinstance(machine, ObjectOf)
    assert machine.properties["vmId"].read_only
    assert not machine.properties["hardwareProfile"].read_only


def test_what_a_vault_only_answers_may_be_sent_back() -> None:
    account = at(shape_of("Microsoft.Storage/storageAccounts"), "properties")
    assert isinstance(account, ObjectOf)
    assert account.properties["primaryEndpoints"].read_only


def test_a_vm_size_may_be_newer_than_the_client() -> None:
    sizes = at(shape_of("Microsoft.Compute/virtualMachines"), "properties", "hardwareProfile", "vmSize")
    modes = at(shape_of("Microsoft.Compute/virtualMachineScaleSets"), "properties", "upgradePolicy", "mode")
    assert isinstance(sizes, Choice)
    assert isinstance(modes, Choice)
    assert (sizes.closed, modes.closed) == (False, True)
