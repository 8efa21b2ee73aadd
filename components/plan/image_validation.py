"""What makes an image pin of a region file impossible: nobody published it, or the machines cannot be what they shall be with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import get_args

from components.plan.invalid_value import InvalidValue, Path, Raw, nearest
from components.plan.locations import ZONAL_LOCATIONS
from components.plan.vm_sizes import VM_SIZES, VmSize
from components.spec.images import ImageCatalog, ImageDefinition, ImageStore, Role
from components.spec.pod_network import Cni
from components.spec.pool import Interconnect
from components.spec.types import KubernetesVersion

CARRIED = {
    Role.NODE: ("containerd", "kubelet", "cni_plugins", "gpufleet"),
    Role.API_SERVER: ("kubernetes", "gpufleet"),
    Role.ETCD: ("etcd", "gpufleet"),
}
"""Packages that the boot files of each role count on: docs/node-images.md."""
VERSION = re.compile(get_args(KubernetesVersion)[1].pattern)
"""What has not this form is told as that alone, and not as a version that no image carries."""
CARRIED_WITH_GPU = ("nvidia_driver", "nvidia_container_toolkit")
CARRIED_WITH_INFINIBAND = ("doca_ofed",)
CARRIED_WITH_CNI = {Cni.AZURE_VNET.value: ("azure_cni",)}


def validate_image(
    path: Path, pin: str, role: Role, group: Raw, cluster: Raw, catalog: ImageCatalog, location: object
) -> Iterator[InvalidValue]:
    """Contradictions of one image pin; group is the raw group of machines of a raw cluster that pins it at path, name@version.

    location is the raw region's.
    """
    if pin not in catalog.pins():
        yield _unpublished(path, pin, catalog)
        return
    captures = catalog.captures(pin)
    if location in ZONAL_LOCATIONS and location not in captures:
        remedy = f"build it there too and add what was captured to node-images/versions.yaml; it is captured in {', '.join(captures)}"
        yield InvalidValue(path, pin, f"is not captured in {location}, and a gallery takes a version from its own location only", remedy)
    definition = catalog.definition(pin)
    if role not in definition.roles:
        fitting = tuple(item for item in catalog.pins() if role in catalog.definition(item).roles)
        yield InvalidValue(path, pin, f"is no image for the role {role.value}", nearest(pin, fitting))
    else:
        yield from _packages(path, pin, definition, role, group, cluster)
    if isinstance(location, str) and location in captures:
        yield from _store(path, pin, definition, captures[location])
    yield from _disk_controller(path, pin, definition, group)
    yield from _kubernetes(path, pin, definition, cluster)


def _unpublished(path: Path, pin: str, catalog: ImageCatalog) -> InvalidValue:
    """An image pin that nobody published."""
    name = pin.partition("@")[0]
    own = tuple(item for item in catalog.pins() if item.startswith(f"{name}@"))
    remedy = f"published: {', '.join(own[-5:])}" if own else nearest(pin, catalog.pins())
    return InvalidValue(path, pin, "is not published in node-images/versions.yaml", remedy)


def _size(group: Raw) -> VmSize | None:
    """VM size of a raw group, None where it names none that is known."""
    size = group.get("vm_size")
    return VM_SIZES.get(size) if isinstance(size, str) else None


def _packages(path: Path, pin: str, definition: ImageDefinition, role: Role, group: Raw, cluster: Raw) -> Iterator[InvalidValue]:
    """An image without what its role, its GPUs, its InfiniBand or the cluster's pod network need."""
    size = _size(group)
    needed = dict.fromkeys(CARRIED[role], f"which the role {role.value} needs")
    if size is not None and size.gpus:
        needed |= dict.fromkeys(CARRIED_WITH_GPU, f"which the GPUs of {size.name} need")
    if group.get("interconnect") == Interconnect.INFINIBAND.value:
        needed |= dict.fromkeys(CARRIED_WITH_INFINIBAND, "which InfiniBand needs")
    network = cluster.get("pod_network")
    cni = network.get("cni") if isinstance(network, Mapping) else None
    if role is Role.NODE and isinstance(cni, str):
        needed |= dict.fromkeys(CARRIED_WITH_CNI.get(cni, ()), f"which cni: {cni} needs")
    lacking = {name: why for name, why in needed.items() if getattr(definition.packages, name) is None}
    if lacking:
        name, why = next(iter(lacking.items()))
        yield InvalidValue(
            path, pin, f"carries no {name}, {why}", f"pin an image with packages.{name}, or build one: node-images/{definition.name}.yaml"
        )


def _store(path: Path, pin: str, definition: ImageDefinition, capture: str) -> Iterator[InvalidValue]:
    """A managed image of which the build captured no managed image: machines are made from the capture itself."""
    if definition.store is ImageStore.MANAGED_IMAGE and "/images/" not in capture:
        kind, name = capture.split("/")[-2:]
        yield InvalidValue(
            path,
            pin,
            f"is a managed image, but its build captured {name} of {kind}",
            f"capture a managed image, or write store: gallery in node-images/{definition.name}.yaml",
        )


def _disk_controller(path: Path, pin: str, definition: ImageDefinition, group: Raw) -> Iterator[InvalidValue]:
    """An image that the machine cannot boot."""
    size = _size(group)
    if size is not None and size.disk_controller == "NVMe" and not definition.nvme_disk_controller:
        yield InvalidValue(
            path,
            pin,
            f"does not boot from the NVMe disk controller of {size.name}",
            "pin an image with nvme_disk_controller: true, or choose a v5 size",
        )


def _kubernetes(path: Path, pin: str, definition: ImageDefinition, cluster: Raw) -> Iterator[InvalidValue]:
    """An image whose Kubernetes is not the cluster's."""
    wanted = cluster.get("kubernetes")
    if not isinstance(wanted, str) or not VERSION.fullmatch(wanted):
        return
    if definition.packages.kubernetes and definition.packages.kubernetes != wanted:
        yield InvalidValue(
            path,
            pin,
            f"carries Kubernetes {definition.packages.kubernetes}, the cluster is {wanted}",
            "pin an image with the cluster's version",
        )
    kubelet = definition.packages.kubelet
    if kubelet and not 0 <= _minor(wanted) - _minor(kubelet) <= 1:
        yield InvalidValue(
            path, pin, f"carries kubelet {kubelet}, the cluster is {wanted}", "a kubelet may be of the same minor version or one behind"
        )


def _minor(version: str) -> int:
    """Minor number of a Kubernetes version."""
    return int(version.split(".")[1])
