"""Image templates: their runs, the gallery versions that a run writes, and cancellation.

https://learn.microsoft.com/rest/api/imagebuilder/virtual-machine-image-templates,
https://learn.microsoft.com/azure/virtual-machines/linux/image-builder-json
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, conflict, invalid
from rehearsal.azure.images.galleries import Image
from rehearsal.azure.images.image_versions import ImageVersion, version_numbers
from rehearsal.azure.resource import FAILED, Json, Operation, Request, Resource, Response
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.scenario import operation_seconds
from rehearsal.azure.validation import required_location, required_value, value_at

TIMEOUT_MINUTES = 240
"""Minutes of a build without a limit of its own:
https://learn.microsoft.com/azure/virtual-machines/linux/image-builder-json#properties-buildtimeoutinminutes
"""
OUTPUT_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""https://learn.microsoft.com/rest/api/imagebuilder/virtual-machine-image-templates/create-or-update#templatesharedimagedistributor"""
POLL = 30.0
"""Seconds between the builder's checks of the replication; an assumption."""
CHANGEABLE = {"distribute", "vmProfile", "errorHandling"}
"""https://learn.microsoft.com/rest/api/imagebuilder/virtual-machine-image-templates/update"""


@dataclass(slots=True)
class Runs:
    """Number of a template's runs, and the operation of the present run, empty without one."""

    count: int = 0
    operation: str = ""


class ImageTemplate(ResourceType):
    """An image template with galleries as its only outputs."""

    type = "Microsoft.VirtualMachineImages/imageTemplates"
    state_type = Runs
    put_duration = "image.put"

    def __init__(self) -> None:
        self.actions = {"run": run_template, "cancel": cancel_run}

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require source, identity and outputs; source and steps cannot change."""
        required_location(body)
        required_value(body, "properties.source", "imageTemplate")
        required_value(body, "identity.type", "imageTemplate")
        outputs = required_value(body, "properties.distribute", "imageTemplate")
        for output in outputs:
            if output.get("type") != "SharedImage":
                message = f"The embedded Azure does not model outputs of type {output.get('type')}, only SharedImage (galleries)."
                raise invalid(message, "distribute", "NotModelled")
            _check_output(output)
        if previous is not None:
            _check_unchanged(body["properties"], previous.sent["properties"])

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add the status of the last run, and the default time limit."""
        last = value_at(previous.body, "properties.lastRunStatus") if previous else None
        status = {"lastRunStatus": last} if last else {}
        return {**body, "properties": {"buildTimeoutInMinutes": 0, **body["properties"], **status}}

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Start with no runs."""
        resource.state = resource.state or Runs()

    def check_deletable(self, cloud: Cloud, resource: Resource) -> None:
        """Refuse a delete during a run."""
        if resource.state.operation:
            raise conflict("Conflict", f"Image template {resource.id.name} is running; cancel the run or wait for it.", resource.id.text)

    def event(self, cloud: Cloud, resource: Resource, name: str, args: tuple[Any, ...]) -> None:
        """Continue the run after the build, or check the replication of its versions."""
        operation = cloud.operations.get(args[0])
        if operation is None or resource.state.operation != args[0]:
            return
        if name == "timeout":
            _end(cloud, resource, operation, "Failed", AzureError(500, "BuildTimeout", "The build did not end in buildTimeoutInMinutes."))
        elif name == "built":
            _distribute(cloud, resource, operation)
        else:
            _check_replication(cloud, resource, operation, list(args[1]))


class RunOutput(ResourceType):
    """Output of a run, which only runs create:
    https://learn.microsoft.com/rest/api/imagebuilder/virtual-machine-image-templates/get-run-output
    """

    type = "Microsoft.VirtualMachineImages/imageTemplates/runOutputs"

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a PUT."""
        raise AzureError(405, "MethodNotAllowed", f"{self.type} is written by the run of an image template, not by a request.")

    def delete_response(self, cloud: Cloud, resource: Resource, request: Request) -> Response | None:
        """Refuse a DELETE."""
        raise AzureError(405, "MethodNotAllowed", f"{self.type} goes with its image template.")

    def blocks_deletion(self, resource: Resource, target: Resource) -> bool:
        """Return False: it only describes what was written."""
        return False


def run_template(cloud: Cloud, resource: Resource, _request: Request) -> Response:
    """Start a build; AzureError Conflict during a run."""
    if resource.state.operation:
        raise conflict("Conflict", f"Image template {resource.id.name} is running already.", resource.id.text)
    operation = cloud.begin_operation(resource.key, "run", resource.location)
    resource.state = Runs(resource.state.count + 1, operation.id)
    resource.properties["lastRunStatus"] = {"startTime": stamp(cloud.now), "runState": "Running", "runSubState": "Building", "message": ""}
    allowed = 60.0 * (resource.properties.get("buildTimeoutInMinutes") or TIMEOUT_MINUTES)
    takes = operation_seconds(cloud, "image.build", resource.key, resource.state.count)
    if takes > allowed:
        cloud.events.after(allowed, resource.key, "timeout", operation.id)
    else:
        cloud.events.after(takes, resource.key, "built", operation.id)
    return Response(202, operation=operation)


def cancel_run(cloud: Cloud, resource: Resource, _request: Request) -> Response:
    """Stop a build; AzureError without a run."""
    operation = cloud.operations.get(resource.state.operation)
    if operation is None:
        raise invalid(f"Image template {resource.id.name} is not running, so there is nothing to cancel.", resource.id.name, "BadRequest")
    _end(cloud, resource, operation, "Canceled", AzureError(409, "Canceled", "The run was cancelled."))
    return Response(202)


def _check_output(output: Json) -> None:
    """Require an image definition, or a version of one, and a name."""
    image, name = output.get("galleryImageId"), output.get("runOutputName")
    if not image or not name:
        raise invalid("Each distribute of type SharedImage needs galleryImageId and runOutputName.", "distribute")
    if parse(image).type.lower() not in (Image.type.lower(), ImageVersion.type.lower()):
        raise invalid(f"galleryImageId '{image}' is the id of no gallery image definition and of no version.", "distribute.galleryImageId")
    if not OUTPUT_NAME.fullmatch(name):
        raise invalid(f"runOutputName '{name}' must match {OUTPUT_NAME.pattern}.", "distribute.runOutputName")


def _check_unchanged(new: Json, old: Json) -> None:
    """Refuse a change of the source or steps: https://github.com/Azure/azure-cli/issues/24893"""
    changed = sorted(key for key in {*new, *old} - CHANGEABLE if new.get(key) != old.get(key))
    if changed:
        message = (
            "Update/Upgrade of image templates is currently not supported. Please change the name of the template you are submitting. "
            f"Changed: {', '.join(changed)}."
        )
        raise conflict("Conflict", message, "properties")


def _distribute(cloud: Cloud, resource: Resource, operation: Operation) -> None:
    """Write the gallery versions; a refusal of the gallery fails the run."""
    written = []
    for output in resource.properties["distribute"]:
        version = _version_id(cloud, output)
        try:
            cloud.handle(Request("PUT", version, "", "", _version_body(resource, output), principal=resource.id.text))
        except AzureError as error:
            _end(cloud, resource, operation, "Failed", error)
            return
        written.append(version.text)
        run_output = parse(f"{resource.id.text}/runOutputs/{output['runOutputName']}")
        cloud.insert(run_output, {"properties": {"artifactId": version.text, "provisioningState": "Succeeded"}}, resource.owner)
    resource.properties["lastRunStatus"]["runSubState"] = "Distributing"
    cloud.events.after(POLL, resource.key, "replicating", operation.id, written)


def _check_replication(cloud: Cloud, resource: Resource, operation: Operation, written: list[str]) -> None:
    """End the run after all its versions are replicated."""
    versions = [cloud.find(one) for one in written]
    if any(one is not None and one.operation for one in versions):
        cloud.events.after(POLL, resource.key, "replicating", operation.id, written)
    elif any(one is None or one.properties.get("provisioningState") == FAILED for one in versions):
        _end(cloud, resource, operation, "Failed", AzureError(409, "DistributionFailed", "What was written is gone or did not replicate."))
    else:
        _end(cloud, resource, operation, "Succeeded", None)


def _end(cloud: Cloud, resource: Resource, operation: Operation, state: str, error: AzureError | None) -> None:
    before = resource.properties["lastRunStatus"]
    ended = {"runState": state, "endTime": stamp(cloud.now), "message": error.message if error else ""}
    resource.properties["lastRunStatus"] = {**{key: value for key, value in before.items() if key != "runSubState"}, **ended}
    resource.state.operation = ""
    cloud.finish_operation(operation, error)


def _version_body(resource: Resource, output: Json) -> Json:
    regions = output.get("targetRegions") or [{"name": name} for name in output.get("replicationRegions") or [resource.location]]
    named = [{"regionalReplicaCount": one.get("replicaCount", 1), **_without(one, "replicaCount")} for one in regions]
    storage = output.get("storageAccountType") or "Standard_LRS"
    profile = {"targetRegions": named, "excludeFromLatest": bool(output.get("excludeFromLatest")), "storageAccountType": storage}
    source = {"source": {"id": resource.id.text}}
    tags = output.get("artifactTags") or {}
    return {"location": resource.location, "tags": tags, "properties": {"publishingProfile": profile, "storageProfile": source}}


def _without(mapping: Json, key: str) -> Json:
    return {name: value for name, value in mapping.items() if name != key}


def _version_id(cloud: Cloud, output: Json) -> ArmId:
    """Return the id of an output: the named version, the next one of the Latest scheme, or one of date and time."""
    image = parse(str(output["galleryImageId"]))
    if image.type.lower() == ImageVersion.type.lower():
        return image
    versioning = output.get("versioning") or {}
    if versioning.get("scheme") != "Latest":
        now = datetime.fromtimestamp(cloud.now, UTC)
        return parse(f"{image.text}/versions/0.{now:%y%j}.{now.hour * 3600 + now.minute * 60 + now.second}")
    taken = [version_numbers(one.id.name) for one in cloud.list(image.text, ImageVersion.type)]
    major = versioning.get("major")
    fit = [one for one in taken if major in (None, -1, one[0])]
    first, second, third = max(fit, default=(0 if major in (None, -1) else int(major), 0, 0))
    return parse(f"{image.text}/versions/{first}.{second}.{third + 1}")
