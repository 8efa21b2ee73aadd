"""Decides which VM sizes, VM families and resource providers a scenario may name: what is not there would never be met."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from components.plan.invalid_value import nearest
from components.plan.vm_sizes import VM_SIZES
from components.spec.types import VmSizeName, form
from rehearsal.azure.api_versions import API_VERSIONS

SERVICES = tuple(sorted({name.partition("/")[0] for name in API_VERSIONS}))


def _among(known: tuple[str, ...], what: str, text: str) -> str:
    if text.lower() not in {one.lower() for one in known}:
        raise ValueError(f"is no {what} that is modelled; {nearest(text, known)}")
    return text


def known_size(text: str) -> str:
    """Accept a VM size that a machine here can have, in any capitals."""
    return _among(tuple(VM_SIZES), "VM size", text)


def known_service(text: str) -> str:
    """Accept a resource provider that is answered here, in any capitals."""
    return _among(SERVICES, "resource provider", text)


Family = Annotated[str, form(r"^[a-zA-Z0-9_]{3,60}$", "a VM family as `az vm list-usage` names it: standardNDSH100v5Family")]
KnownVmSize = Annotated[VmSizeName, AfterValidator(known_size)]
Provider = Annotated[
    str, form(r"^Microsoft\.[A-Za-z]{2,40}$", "a resource provider as Azure names it: Microsoft.Compute"), AfterValidator(known_service)
]
