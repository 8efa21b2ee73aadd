"""Objects as a program registers them, passed through a provider's calls like by the engine."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any

import yaml
from provider_process import Client

from rehearsal.program.pulumi_values import Json

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"


@dataclass(frozen=True)
class Made:
    """A resource as the engine's state holds it."""

    type: str
    id: str
    inputs: Json
    outputs: Json

    @property
    def uid(self) -> str:
        return str(self.outputs["metadata"]["uid"])


class Objects:
    """The engine's calls for a resource."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def checked(self, kind: str, inputs: Json, old: Json | None = None, name: str = "it") -> Json:
        """Inputs that must be right."""
        found, faults = self.client.check(kind, inputs, old, name)
        assert faults == []
        return found

    def make(self, kind: str, inputs: Json, name: str = "it", timeout: float = 0) -> Made:
        """Check and Create."""
        inputs = self.checked(kind, inputs, name=name)
        made, outputs = self.client.create(kind, inputs, name=name, timeout=timeout)
        return Made(kind, made, inputs, outputs)

    def differing(self, made: Made, inputs: Json) -> Any:
        """Check and Diff."""
        return self.client.diff(made.type, made.inputs, self.checked(made.type, inputs, made.inputs), made.outputs, made.id)

    def change(self, made: Made, inputs: Json, *, preview: bool = False, timeout: float = 0) -> Made:
        """Check and Update."""
        inputs = self.checked(made.type, inputs, made.inputs)
        outputs = self.client.update(made.type, made.id, made.inputs, made.outputs, inputs, preview=preview, timeout=timeout)
        return replace(made, inputs=inputs, outputs=outputs)

    def refreshed(self, made: Made) -> Made | None:
        """Read, as a refresh does it; None where it is gone."""
        found, outputs, inputs = self.client.read(made.type, made.id, made.inputs, made.outputs)
        return replace(made, inputs=inputs, outputs=outputs) if found else None

    def remove(self, made: Made) -> None:
        """Delete."""
        self.client.delete(made.type, made.id, made.inputs, made.outputs)


def fresh(name: str) -> str:
    """A name that nothing had before."""
    return f"{name}-{uuid.uuid4().hex[:6]}"


def config_map(name: str, **data: str) -> Json:
    """A ConfigMap of the namespace default."""
    return {"metadata": {"name": name}, "data": data}


def kubeconfig_text(server: str, user: str = "one", **context: str) -> str:
    """A kubeconfig without access to any cluster."""
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "cluster", "user": user, **context}}],
        "clusters": [{"name": "cluster", "cluster": {"server": server}}],
        "users": [{"name": user, "user": {"token": "hush"}}],
    }
    return yaml.safe_dump(document)
