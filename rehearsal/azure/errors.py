"""Errors of Azure's REST API: status, code, message and target.

The form is that of https://github.com/microsoft/api-guidelines/blob/vNext/azure/Guidelines.md#handling-errors; codes are those of
https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.errors import GpufleetError


class AzureError(GpufleetError):
    """One error of Azure: HTTP status, Azure's code, message, target, and headers such as Retry-After."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        target: str | None = None,
        details: tuple[AzureError, ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status, self.code, self.message, self.target, self.details = status, code, message, target, details
        self.headers: Mapping[str, str] = headers or {}
        super().__init__(f"{code}: {message}")

    def body(self) -> dict[str, Any]:
        """Return the error object: code, message, and target and details if there are any."""
        value: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.target is not None:
            value["target"] = self.target
        if self.details:
            value["details"] = [detail.body() for detail in self.details]
        return value

    @property
    def retry_after(self) -> float | None:
        """Return the seconds before a retry; None if a retry does not help."""
        value = self.headers.get("Retry-After")
        return None if value is None else float(value)


def not_found(resource_type: str, name: str, group: str) -> AzureError:
    """Return the error for a missing resource."""
    return AzureError(
        404, "ResourceNotFound", f"The Resource '{resource_type}/{name}' under resource group '{group}' was not found.", target=name
    )


def invalid(message: str, target: str | None = None, code: str = "InvalidParameter") -> AzureError:
    """Return the error for an invalid body."""
    return AzureError(400, code, message, target=target)


def not_modelled(what: str, target: str | None = None) -> AzureError:
    """Return the error for what Azure has and the model does not: an operation, a type, or a feature of one.

    It is no 404, because clients take that for a missing resource.
    """
    return AzureError(
        400, "NotModelled", f"The embedded Azure does not model {what}. docs/embedded-azure.md lists what it models.", target=target
    )


def location_required() -> AzureError:
    """Return the error for a body without the location that its type requires."""
    return invalid("The location property is required for this definition.", "location", "LocationRequired")


def conflict(code: str, message: str, target: str | None = None) -> AzureError:
    """Return the error for a request that the current state forbids."""
    return AzureError(409, code, message, target=target)


def property_change_not_allowed(path: str, old: object, new: object) -> AzureError:
    """Return the error for a change of a property that Azure fixes at creation."""
    return AzureError(409, "PropertyChangeNotAllowed", f"Changing property '{path}' is not allowed (from {old!r} to {new!r}).", target=path)
