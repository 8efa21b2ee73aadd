"""Outputs of a base stack that the region's stack reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import pulumi

from components.captures import known_id
from components.plan.model import ImagePlan


def vault_key(cluster: str, role: str) -> str:
    """Return the key of a vault in the base stack's `vault_ids`."""
    return f"{cluster}/{role}"


@dataclass(frozen=True)
class BaseOutputs:
    """Outputs of the base stack, with the field names as output names.

    image_version_ids maps a pin (name@version) to the id of its gallery image version, vault_ids a vault_key to the vault's id.
    """

    resource_group: pulumi.Input[str]
    hub_vnet_id: pulumi.Input[str]
    hub_endpoints_subnet_id: pulumi.Input[str]
    hub_private_zone: pulumi.Input[str]
    image_version_ids: pulumi.Input[Mapping[str, str]]
    vault_ids: pulumi.Input[Mapping[str, str]]
    backup_account_id: pulumi.Input[str]

    @classmethod
    def from_stack(cls, reference: pulumi.StackReference) -> Self:
        """Return the outputs of a base stack; the program fails with one line if an output is missing."""
        return cls(**{field.name: _exported(reference, field.name) for field in fields(cls)})

    def vault_id(self, cluster: str, role: str) -> pulumi.Output[str]:
        """Return the id of a cluster's vault; role is "etcd", "control" or "node"."""
        return pulumi.Output.from_input(self.vault_ids).apply(lambda ids: _known(ids, vault_key(cluster, role), "vault"))

    def image_id(self, image: ImagePlan) -> pulumi.Input[str]:
        """Return the id of an image for machines: its gallery version, which must exist, or its managed image."""
        if not image.in_gallery:
            return known_id(image, image.machine_image_id)
        return pulumi.Output.from_input(self.image_version_ids).apply(lambda ids: _known(ids, image.pin, "image"))


def _exported(reference: pulumi.StackReference, name: str) -> pulumi.Output[Any]:
    """Return one output. StackReference.require_output would raise a KeyError, which Pulumi prints with a traceback."""
    return reference.get_output(name).apply(lambda value: _given(value, name))


def _given(value: Any, name: str) -> Any:
    """Return the value; raise RunError with the remedy if it is None."""
    if value is None:
        raise pulumi.RunError(
            f"the base stack has no output {name}; it does not exist yet, or is older than this program: run pulumi up on it first"
        )
    return value


def _known(ids: Mapping[str, str], key: str, what: str) -> str:
    """Return the id of a key; raise RunError with the remedy if the base stack is older than the region file."""
    if key not in ids:
        raise pulumi.RunError(
            f"the base stack has no {what} {key}; it is older than the region file: run pulumi up on the base stack first"
        )
    return ids[key]
