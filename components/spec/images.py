"""Image catalog: the definition of each image and its published versions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from components.spec.types import AzureLocation, CaptureId, ImageName, ImageVersion, KubernetesVersion, Model, form


class Role(StrEnum):
    """Role of a machine."""

    NODE = "node"
    API_SERVER = "api-server"
    ETCD = "etcd"


class ImageStore(StrEnum):
    """Source of the image for scale sets: a set holds at most 600 machines from a managed image, 1,000 from a gallery image."""

    GALLERY = "gallery"
    MANAGED_IMAGE = "managed-image"


class BaseImage(Model):
    """The marketplace image that a build starts from, pinned."""

    publisher: str
    """Marketplace publisher."""
    offer: str
    """Marketplace offer."""
    sku: str
    """Marketplace SKU."""
    version: Annotated[str, form(r"^[0-9]+\.[0-9]+\.[0-9]+$", 'MAJOR.MINOR.PATCH in quotes: "22.04.202611010"')]
    """Exact version; latest is refused."""


class Packages(Model):
    """Exact versions of the packages that a build adds to its base image; absent if the role does not need the package."""

    kernel: str
    """Linux kernel package version, pinned."""
    containerd: str | None = None
    """containerd version."""
    kubelet: KubernetesVersion | None = None
    """kubelet version, equal to the cluster's Kubernetes version or one minor release behind."""
    cni_plugins: str | None = None
    """CNI reference plugins version."""
    azure_cni: str | None = None
    """Version of Microsoft's azure-vnet plugins, if clusters with cni: azure-vnet use the image."""
    nvidia_driver: str | None = None
    """NVIDIA driver version."""
    cuda: str | None = None
    """CUDA toolkit version."""
    nvidia_container_toolkit: str | None = None
    """NVIDIA container toolkit version."""
    doca_ofed: str | None = None
    """DOCA-OFED version: the InfiniBand driver."""
    kubernetes: KubernetesVersion | None = None
    """Version of kube-apiserver, kube-controller-manager and kube-scheduler."""
    gpufleet: str | None = None
    """Version of gpufleet: nodes run its gpufleet-node, API servers gpufleet-csr-approver, etcd members gpufleet-etcd-snapshot."""
    etcd: str | None = None
    """etcd version."""


class ImageDefinition(Model):
    """One image: its base, its packages and the roles that it supports."""

    name: ImageName
    """Name of the image; equals the file's name."""
    description: Annotated[str, Field(min_length=10, max_length=200)]
    """Purpose of the image, in one sentence."""
    roles: tuple[Role, ...] = Field(min_length=1)
    """Roles that a machine with this image can have."""
    base: BaseImage
    """The marketplace image that the build starts from."""
    packages: Packages
    """Exact versions of the packages that the build adds."""
    store: ImageStore = ImageStore.GALLERY
    """Source of the image for scale sets."""
    gpus: tuple[str, ...] = ()
    """GPU models of the machines that the image was built and tested for, as the table of VM sizes names them; empty means every model."""
    nvme_disk_controller: bool = False
    """True if the image boots from an NVMe disk controller, which v6 and later VM sizes require."""


class PublishedVersion(Model):
    """One published version of an image."""

    version: ImageVersion
    """MAJOR.MINOR.PATCH, quoted."""
    captures: dict[AzureLocation, CaptureId] = Field(min_length=1)
    """Resource id of the captured managed image or generalised machine, by location: a gallery needs a capture in its own location."""
    published: Annotated[str, form(r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]$", 'a day in quotes: "2026-11-12"')]
    """Day of publication, quoted: "2026-11-12"."""


class Published(Model):
    """node-images/versions.yaml: the versions that a region file may pin."""

    images: dict[ImageName, tuple[PublishedVersion, ...]]
    """Published versions by image name."""


class ImageCatalog(Model):
    """All image definitions and their published versions."""

    definitions: dict[ImageName, ImageDefinition]
    """Definitions by name."""
    published: dict[ImageName, tuple[PublishedVersion, ...]]
    """Published versions by image name."""

    def pins(self, location: str | None = None) -> tuple[str, ...]:
        """Return all published pins (name@version), sorted; with a location, only those captured there."""
        entries = ((name, entry) for name, entries in self.published.items() for entry in entries)
        return tuple(sorted(f"{name}@{entry.version}" for name, entry in entries if location is None or location in entry.captures))

    def definition(self, pin: str) -> ImageDefinition:
        """Return the definition of a pin; raise KeyError if there is none."""
        return self.definitions[pin.partition("@")[0]]

    def captures(self, pin: str) -> Mapping[str, str]:
        """Return the resource ids of the captures of a pinned version, by location; raise KeyError if the pin is not published."""
        name, _, version = pin.partition("@")
        found = next((entry for entry in self.published[name] if entry.version == version), None)
        if found is None:
            raise KeyError(pin)
        return found.captures
