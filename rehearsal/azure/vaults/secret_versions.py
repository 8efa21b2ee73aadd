"""Versions of a secret, with their bodies for Azure Resource Manager and for the vault itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.resource import Json
from rehearsal.azure.validation import without_nulls

DATES = ("enabled", "nbf", "exp")


@dataclass(slots=True)
class SecretVersion:
    """One version: its id (32 hex digits), value, times in seconds since 1970, and attributes."""

    id: str
    value: str
    created: int
    updated: int
    content_type: str | None = None
    attributes: Json = field(default_factory=dict)
    tags: Json = field(default_factory=dict)

    def attributes_body(self) -> Json:
        """Return the attributes as Azure Resource Manager and the vault return them."""
        return {"enabled": True, **self.attributes, "created": self.created, "updated": self.updated}


@dataclass(slots=True)
class SecretState:
    """The URI of a secret and its versions, oldest first."""

    uri: str
    versions: list[SecretVersion] = field(default_factory=list)

    @property
    def current(self) -> SecretVersion:
        return self.versions[-1]

    @property
    def body(self) -> Json:
        """Return the body of a GET of Azure Resource Manager, which never contains the value."""
        current = self.current
        result: Json = {"attributes": current.attributes_body(), "secretUri": self.uri, "secretUriWithVersion": f"{self.uri}/{current.id}"}
        if current.content_type is not None:
            result["contentType"] = current.content_type
        return {"properties": result, "tags": current.tags} if current.tags else {"properties": result}

    def sent(self) -> Json:
        """Return the body of a PUT that creates the current version."""
        current = self.current
        properties = without_nulls({"value": current.value, "contentType": current.content_type, "attributes": current.attributes or None})
        return {"properties": properties, "tags": current.tags} if current.tags else {"properties": properties}

    def add(
        self, cloud: Cloud, value: str, content_type: str | None, attributes: Mapping[str, Any], tags: Mapping[str, Any]
    ) -> SecretVersion:
        """Add a version, whose id follows from the secret's URI and its number."""
        number = len(self.versions)
        name = cloud.stable_uuid(self.uri, *([number] if number else [])).replace("-", "")
        now = int(cloud.now)
        self.versions.append(SecretVersion(name, value, now, now, content_type, settable_attributes(attributes), dict(tags)))
        return self.current

    def find(self, version: str) -> SecretVersion | None:
        """Return the version with an id, the current one for an empty id."""
        if not version:
            return self.current
        return next((one for one in self.versions if one.id == version), None)

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> SecretState:
        """Return the state from the output of asdict."""
        return cls(data["uri"], [SecretVersion(**one) for one in data["versions"]])


def settable_attributes(attributes: Mapping[str, Any] | None) -> Json:
    """Return the attributes that a client can set."""
    return {key: value for key, value in without_nulls(attributes).items() if key in DATES}
