"""What the image catalog says: the definition of every pool image, and the versions of it that are published."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from components.spec.types import AzureLocation, CaptureId, ImageName, ImageVersion, KubernetesVersion, Model, form


class Role(StrEnum):
    """What a machine with the image can be."""

    NODE = "node"
    API_SERVER = "api-server"
    ETCD = "etcd"


class ImageStore(StrEnum):
    """Where scale sets take the image from; a managed image bounds a set at 600 machines, a gallery image at 1,000."""

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
    """Exact versions of what a build adds to its base; absent where the role does not carry it."""

    kernel: str
    """Linux kernel package version, held."""
    containerd: str | None = None
    """containerd version."""
    kubelet: KubernetesVersion | None = None
    """kubelet version, equal to the cluster's Kubernetes version or one minor release behind."""
    cni_plugins: str | None = None
    """CNI reference plugins version."""
    azure_cni: str | None = None
    """Version of Microsoft's azure-vnet plugins, where clusters with cni: azure-vnet use the image."""
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
    """Version of this package, of which nodes run gpufleet-node, API servers gpufleet-csr-approver, etcd members gpufleet-etcd-snapshot."""
    etcd: str | None = None
    """etcd version."""


class ImageDefinition(Model):
    """One image: its base, its packages and the roles it serves."""

    name: ImageName
    """Name of the image; equals the file's name."""
    description: Annotated[str, Field(min_length=10, max_length=200)]
    """What the image is for, in one sentence."""
    roles: tuple[Role, ...] = Field(min_length=1)
    """What a machine with the image can be."""
    base: BaseImage
    """The marketplace image that the build starts from."""
    packages: Packages
    """Exact versions of what the build adds."""
    store: ImageStore = ImageStore.GALLERY
    """Where scale sets take the image from."""
    nvme_disk_controller: bool = False
    """True where the image boots from an NVMe disk controller, which v6 and later VM sizes demand."""


class PublishedVersion(Model):
    """One published version of an image."""

    version: ImageVersion
    """MAJOR.MINOR.PATCH, quoted."""
    captures: dict[AzureLocation, CaptureId] = Field(min_length=1)
    """What the build captured, a managed image or a generalised machine, by location: a gallery takes a version from its own."""
    published: Annotated[str, form(r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]$", 'a day in quotes: "2026-11-12"')]
    """Day of publication, quoted: "2026-11-12"."""


class Published(Model):
    """node-images/versions.yaml: what may be pinned."""

    images: dict[ImageName, tuple[PublishedVersion, ...]]
    """Published versions by image name."""


class ImageCatalog(Model):
    """All image definitions and their published versions."""

    definitions: dict[ImageName, ImageDefinition]
    """Definitions by name."""
    published: dict[ImageName, tuple[PublishedVersion, ...]]
    """Published versions by image name."""

    def pins(self, location: str | None = None) -> tuple[str, ...]:
        """All pins that are published, sorted: name@version; with a location those that may be written there, being captured in it."""
        entries = ((name, entry) for name, entries in self.published.items() for entry in entries)
        return tuple(sorted(f"{name}@{entry.version}" for name, entry in entries if location is None or location in entry.captures))

    def definition(self, pin: str) -> ImageDefinition:
        """Definition behind a pin; KeyError where none is."""
        return self.definitions[pin.partition("@")[0]]

    def captures(self, pin: str) -> Mapping[str, str]:
        """Resource ids of what the builds of a pinned version captured, by location; KeyError where the pin is not published."""
        name, _, version = pin.partition("@")
        found = next((entry for entry in self.published[name] if entry.version == version), None)
        if found is None:
            raise KeyError(pin)
        return found.captures
