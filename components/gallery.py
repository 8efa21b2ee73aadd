"""Image gallery of a region: a definition per image, and versions with the replicas for concurrent creates."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import compute

from components.captures import known_id
from components.plan.model import ImagePlan, RegionPlan
from components.spec.images import ImageDefinition

PUBLISHER = "gpufleet"


@dataclass(frozen=True)
class GalleryArgs:
    plan: RegionPlan
    resource_group: pulumi.Input[str]


class Gallery(pulumi.ComponentResource):
    """The gallery; version_ids maps a pin (name@version) to the image version's id."""

    version_ids: dict[str, pulumi.Output[str]]

    def __init__(self, name: str, args: GalleryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:gallery:Gallery", name, {}, opts)
        gallery = compute.Gallery(
            f"{name}-gallery",
            gallery_name=args.plan.gallery.name,
            resource_group_name=args.resource_group,
            location=args.plan.spec.location,
            tags=args.plan.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        definitions = {image.definition.name: image.definition for image in args.plan.gallery.images}
        written = {key: self._definition(f"{name}-{key}", args, gallery, definition) for key, definition in definitions.items()}
        self.version_ids = {
            image.pin: self._publish(f"{name}-{image.pin}", args, gallery, written[image.definition.name], image)
            for image in args.plan.gallery.images
        }
        self.register_outputs({"version_ids": self.version_ids})

    def _definition(self, name: str, args: GalleryArgs, gallery: compute.Gallery, definition: ImageDefinition) -> compute.GalleryImage:
        return compute.GalleryImage(
            name,
            gallery_image_name=definition.name,
            gallery_name=gallery.name,
            resource_group_name=args.resource_group,
            location=args.plan.spec.location,
            description=definition.description,
            identifier=compute.GalleryImageIdentifierArgs(publisher=PUBLISHER, offer=args.plan.name, sku=definition.name),
            os_type=compute.OperatingSystemTypes.LINUX,
            os_state=compute.OperatingSystemStateTypes.GENERALIZED,
            hyper_v_generation="V2",
            architecture="x64",
            features=features(definition),
            tags=args.plan.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _publish(
        self, name: str, args: GalleryArgs, gallery: compute.Gallery, definition: compute.GalleryImage, image: ImagePlan
    ) -> pulumi.Output[str]:
        location = args.plan.spec.location
        target = compute.TargetRegionArgs(name=location, regional_replica_count=image.replicas, storage_account_type="Standard_ZRS")
        version = compute.GalleryImageVersion(
            name,
            gallery_image_version_name=image.version,
            gallery_image_name=definition.name,
            gallery_name=gallery.name,
            resource_group_name=args.resource_group,
            location=location,
            storage_profile=compute.GalleryImageVersionStorageProfileArgs(source=source(known_id(image, image.capture))),
            publishing_profile=compute.GalleryImageVersionPublishingProfileArgs(
                target_regions=[target],
                # Every machine has an exact version; latest is not used.
                exclude_from_latest=True,
            ),
            tags=args.plan.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        return version.id


def features(definition: ImageDefinition) -> list[compute.GalleryImageFeatureArgs]:
    """Return the features of a definition.

    Without a security type, this API version uses Standard; Trusted Launch would refuse the unsigned kernel modules of GPU drivers. This
    API version does not accept the value Standard; from 2025-03-03 on it is a value and no longer the default:
    https://learn.microsoft.com/azure/virtual-machines/azure-compute-gallery.
    """
    if not definition.nvme_disk_controller:
        return []
    return [compute.GalleryImageFeatureArgs(name="DiskControllerTypes", value="SCSI, NVMe")]


def source(capture: pulumi.Input[str]) -> compute.GalleryArtifactVersionFullSourceArgs:
    """Return the source of a version: a machine or a managed image, by its resource id."""
    if isinstance(capture, str) and "/virtualMachines/" in capture:
        return compute.GalleryArtifactVersionFullSourceArgs(virtual_machine_id=capture)
    return compute.GalleryArtifactVersionFullSourceArgs(id=capture)
