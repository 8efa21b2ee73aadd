"""Decides whether the body of a PUT can be meant, by the official SDK's models, and refuses it in Azure's words where it cannot."""

from __future__ import annotations

from collections.abc import Iterable

from rehearsal.azure.body_checks import DEPTH, BodyMismatchError, compiled
from rehearsal.azure.errors import AzureError, invalid, location_required
from rehearsal.azure.resource import Json, Request
from rehearsal.azure.resource_type import Kind
from rehearsal.azure.sdk_shapes import UnknownShapeError, shape_of


class SdkBodies:
    """Reads bodies as Azure does: names in any capitals, null as not given, what only Azure sets left out, all else refused.

    It is a `Body` of rehearsal/azure/cloud.py.
    """

    def checked(self, kind: Kind, request: Request, /) -> Json:
        """The body in the published capitals, a new object; AzureError 400 for what the type cannot have."""
        return checked_body(kind.type, request.body)


def checked_body(resource_type: str, body: object) -> Json:
    """The body of a resource type that is kept, as SdkBodies does."""
    try:
        shape = shape_of(resource_type)
    except UnknownShapeError as unknown:
        raise AzureError(404, "InvalidResourceType", f"{unknown}.", target=resource_type) from None
    if body is None:
        raise invalid("The request content was invalid: a PUT needs a body, and there is none.", code="InvalidRequestContent")
    try:
        kept: Json = compiled(shape)(body, DEPTH)
    except BodyMismatchError as misfit:
        raise _refusal(misfit, shape.name) from None
    return kept


def _refusal(misfit: BodyMismatchError, name: str) -> AzureError:
    if misfit.code != "InvalidParameter":
        sentence = misfit.sentence
        if len(misfit.path) == 1:
            # Azure Resource Manager reads the outermost level itself, whatever the type.
            sentence = sentence.replace(f"on object of type '{name}'", "on object of type 'ResourceDefinition'")
        told = f"The request content was invalid and could not be deserialized: '{sentence} Path '{_path(misfit.path)}'.'."
        return invalid(told, code=misfit.code)
    if misfit.path == ["location"]:
        return location_required()
    target = _path(step for step in misfit.path if step != "properties")
    if not misfit.sentence:
        return invalid(f"Required parameter '{target}' is missing (null).", target)
    return invalid(f"The value of parameter {target} is invalid. {misfit.sentence}", target)


def _path(steps: Iterable[str | int]) -> str:
    """A path as Json.NET writes it: properties.zones[0], with what is no plain name in brackets."""
    told = ""
    for step in steps:
        if isinstance(step, int):
            told += f"[{step}]"
        elif step.replace("_", "").isalnum():
            told += f".{step}" if told else step
        else:
            told += f"['{step}']"
    return told
