"""What a region's own stack takes from its base stack, and under which names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import pulumi

from components.plan.model import ImagePlan


def vault_key(cluster: str, role: str) -> str:
    """Key of a vault in the base stack's `vault_ids`."""
    return f"{cluster}/{role}"


@dataclass(frozen=True)
class BaseOutputs:
    """Outputs of the base stack, each under its field's name.

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
        """The outputs of a base stack; the program fails in one line, naming the output, where the stack has not exported one."""
        return cls(**{field.name: _exported(reference, field.name) for field in fields(cls)})

    def vault_id(self, cluster: str, role: str) -> pulumi.Output[str]:
        """Id of a cluster's vault; role is "etcd", "control" or "node"."""
        return pulumi.Output.from_input(self.vault_ids).apply(lambda ids: _known(ids, vault_key(cluster, role), "vault"))

    def image_id(self, image: ImagePlan) -> pulumi.Input[str]:
        """Id of what machines with an image are made from: its gallery version, which must be there, or its managed image."""
        if not image.in_gallery:
            return image.machine_image_id
        return pulumi.Output.from_input(self.image_version_ids).apply(lambda ids: _known(ids, image.pin, "image"))


def _exported(reference: pulumi.StackReference, name: str) -> pulumi.Output[Any]:
    """One output. StackReference.require_output ends in a KeyError, which Pulumi prints with its traceback."""
    return reference.get_output(name).apply(lambda value: _given(value, name))


def _given(value: Any, name: str) -> Any:
    """The value; RunError, with what to do, where there is none."""
    if value is None:
        raise pulumi.RunError(
            f"the base stack has no output {name}; it was not made yet, or is older than this program: run pulumi up on it first"
        )
    return value


def _known(ids: Mapping[str, str], key: str, what: str) -> str:
    """The id under a key; RunError, with what to do, where the base stack is older than the region file."""
    if key not in ids:
        raise pulumi.RunError(
            f"the base stack has no {what} {key}; it is older than the region file: run pulumi up on the base stack first"
        )
    return ids[key]
