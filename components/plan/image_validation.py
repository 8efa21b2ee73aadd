"""Validation of image pins: published, and suitable for the machines' role."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import get_args

from components.plan.invalid_value import InvalidValue, Path, Raw, nearest
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
"""Packages that the boot files of each role require: docs/node-images.md."""
VERSION = re.compile(get_args(KubernetesVersion)[1].pattern)
"""Form of a version; a value without this form is reported only by the model of components.spec."""
CARRIED_WITH_GPU = ("nvidia_driver", "nvidia_container_toolkit")
CARRIED_WITH_INFINIBAND = ("doca_ofed",)
CARRIED_WITH_CNI = {Cni.AZURE_VNET.value: ("azure_cni",)}


def validate_image(
    path: Path, pin: str, role: Role, group: Raw, cluster: Raw, catalog: ImageCatalog, location: object
) -> Iterator[InvalidValue]:
    """Yield the invalid values of an image pin; group is the raw group of machines of a raw cluster that pins it at path, name@version.

    location is the raw region's. A version that is not captured there is valid, since only a deployment to Azure needs the capture:
    ImagePlan.captured.
    """
    if pin not in catalog.pins():
        yield _unpublished(path, pin, role, catalog)
        return
    captures = catalog.captures(pin)
    definition = catalog.definition(pin)
    if role not in definition.roles:
        suitable = tuple(item for item in catalog.pins() if role in catalog.definition(item).roles)
        yield InvalidValue(path, pin, f"is no image for the role {role.value}", nearest(pin, suitable))
    else:
        yield from _packages(path, pin, definition, role, group, cluster)
    if isinstance(location, str) and location in captures:
        yield from _store(path, pin, definition, captures[location])
    yield from _disk_controller(path, pin, definition, group)
    yield from _kubernetes(path, pin, definition, cluster)


def _unpublished(path: Path, pin: str, role: Role, catalog: ImageCatalog) -> InvalidValue:
    """Return the error of an unpublished image pin."""
    name = pin.partition("@")[0]
    own = tuple(item for item in catalog.pins() if item.startswith(f"{name}@"))
    suitable = tuple(item for item in catalog.pins() if role in catalog.definition(item).roles)
    remedy = f"published: {', '.join(own[-5:])}" if own else nearest(pin, suitable)
    return InvalidValue(path, pin, "is not published in node-images/versions.yaml", remedy)


def _size(group: Raw) -> VmSize | None:
    """Return the VM size of a raw group; None if it is missing or unknown."""
    size = group.get("vm_size")
    return VM_SIZES.get(size) if isinstance(size, str) else None


def _packages(path: Path, pin: str, definition: ImageDefinition, role: Role, group: Raw, cluster: Raw) -> Iterator[InvalidValue]:
    """Yield the first package that is missing for the role, GPUs, InfiniBand or pod network."""
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
    missing = {name: why for name, why in needed.items() if getattr(definition.packages, name) is None}
    if missing:
        name, why = next(iter(missing.items()))
        yield InvalidValue(
            path, pin, f"carries no {name}, {why}", f"pin an image with packages.{name}, or build one: node-images/{definition.name}.yaml"
        )


def _store(path: Path, pin: str, definition: ImageDefinition, capture: str) -> Iterator[InvalidValue]:
    """Yield a pin of a managed image whose capture is no managed image, since machines are created from the capture."""
    if definition.store is ImageStore.MANAGED_IMAGE and "/images/" not in capture:
        kind, name = capture.split("/")[-2:]
        yield InvalidValue(
            path,
            pin,
            f"is a managed image, but its build captured {name} of {kind}",
            f"capture a managed image, or write store: gallery in node-images/{definition.name}.yaml",
        )


def _disk_controller(path: Path, pin: str, definition: ImageDefinition, group: Raw) -> Iterator[InvalidValue]:
    """Yield a pin of an image that the machine cannot boot from an NVMe disk controller."""
    size = _size(group)
    if size is not None and size.disk_controller == "NVMe" and not definition.nvme_disk_controller:
        yield InvalidValue(
            path,
            pin,
            f"does not boot from the NVMe disk controller of {size.name}",
            "pin an image with nvme_disk_controller: true, or choose a v5 size",
        )


def _kubernetes(path: Path, pin: str, definition: ImageDefinition, cluster: Raw) -> Iterator[InvalidValue]:
    """Yield a pin of an image whose Kubernetes version does not match the cluster's."""
    expected = cluster.get("kubernetes")
    if not isinstance(expected, str) or not VERSION.fullmatch(expected):
        return
    if definition.packages.kubernetes and definition.packages.kubernetes != expected:
        yield InvalidValue(
            path,
            pin,
            f"carries Kubernetes {definition.packages.kubernetes}, the cluster is {expected}",
            "pin an image with the cluster's version",
        )
    kubelet = definition.packages.kubelet
    if kubelet and not 0 <= _minor(expected) - _minor(kubelet) <= 1:
        yield InvalidValue(
            path, pin, f"carries kubelet {kubelet}, the cluster is {expected}", "a kubelet may be of the same minor version or one behind"
        )


def _minor(version: str) -> int:
    """Return the minor number of a Kubernetes version."""
    return int(version.split(".")[1])
