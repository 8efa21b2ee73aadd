"""Validation of image pins: published, and suitable for the machines' role."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import get_args

from components.plan.invalid_value import InvalidValue, Path, Raw, most_similar, nearest
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

    location is the raw region's. A version without a capture there is not invalid: the plan contains it, and stacks.notes reports it.
    """
    suitable = suitable_images(role, group, cluster, catalog, location)
    if pin not in catalog.pins():
        yield _unpublished(path, pin, suitable, catalog)
    else:
        yield from _faults(path, pin, role, group, cluster, catalog, location, suitable)


def suitable_images(role: Role, group: Raw, cluster: Raw, catalog: ImageCatalog, location: object) -> tuple[str, ...]:
    """Return the published pins without fault for a raw group of machines; with GPU driver only for machines with GPUs, if there is one."""
    valid = tuple(pin for pin in catalog.pins() if not any(_faults((), pin, role, group, cluster, catalog, location)))
    size = _size(group)
    alike = tuple(pin for pin in valid if size and _drives_gpus(catalog.definition(pin)) == bool(size.gpus))
    return alike or valid


def suitable_sizes(role: Role, group: Raw, catalog: ImageCatalog) -> tuple[str, ...]:
    """Return the VM sizes that fit the role, the interconnect and the image of a raw group of machines; for any image if none fits."""
    sizes = [size for size in VM_SIZES.values() if _fits(size, role, group)]
    pin = group.get("image")
    if isinstance(pin, str) and pin in catalog.pins():
        driver = _drives_gpus(catalog.definition(pin))
        definition = catalog.definition(pin)
        fitting = [
            size
            for size in sizes
            if not any(_disk_controller((), pin, definition, size)) and bool(size.gpus) == driver and _is_for(definition, size)
        ]
        sizes = fitting or sizes
    return tuple(size.name for size in sizes)


def _drives_gpus(definition: ImageDefinition) -> bool:
    """Return True for an image with a GPU driver."""
    return definition.packages.nvidia_driver is not None


def _is_for(definition: ImageDefinition, size: VmSize) -> bool:
    """Return True if an image is for the GPU model of a VM size; an image without models is for all, and for machines without GPU."""
    return not size.gpus or not definition.gpus or size.gpu in definition.gpus


def _fits(size: VmSize, role: Role, group: Raw) -> bool:
    """Return True if a VM size fits a role and the interconnect of a raw group of machines."""
    if role is not Role.NODE:
        return not size.gpus and (role is not Role.ETCD or size.local_nvme_gib > 0)
    return bool(size.infiniband_ports) or group.get("interconnect") != Interconnect.INFINIBAND.value


def _faults(
    path: Path,
    pin: str,
    role: Role,
    group: Raw,
    cluster: Raw,
    catalog: ImageCatalog,
    location: object,
    suitable: tuple[str, ...] = (),
) -> Iterator[InvalidValue]:
    """Yield the faults of a published pin; the remedies name the most similar of the suitable pins."""
    captures = catalog.captures(pin)
    definition = catalog.definition(pin)
    if role not in definition.roles:
        yield InvalidValue(path, pin, f"is no image for the role {role.value}", nearest(pin, suitable))
        return
    example = f", for example {most_similar(pin, suitable)}" if suitable else ""
    yield from _packages(path, pin, definition, role, group, cluster, example)
    if isinstance(location, str) and location in captures:
        yield from _store(path, pin, definition, captures[location])
    if (size := _size(group)) is not None:
        yield from _disk_controller(path, pin, definition, size, example)
        if not _is_for(definition, size):
            yield _gpu_model(path, pin, definition, size, suitable, suitable_sizes(role, group, catalog))
    yield from _kubernetes(path, pin, definition, cluster, example)


def _unpublished(path: Path, pin: str, suitable: tuple[str, ...], catalog: ImageCatalog) -> InvalidValue:
    """Return the error of an unpublished image pin."""
    name = pin.partition("@")[0]
    own = tuple(item for item in suitable if item.startswith(f"{name}@"))
    remedy = f"published: {', '.join(own[-5:])}" if own else nearest(pin, suitable or catalog.pins())
    return InvalidValue(path, pin, "is not published in node-images/versions.yaml", remedy)


def _size(group: Raw) -> VmSize | None:
    """Return the VM size of a raw group; None if it is missing or unknown."""
    size = group.get("vm_size")
    return VM_SIZES.get(size) if isinstance(size, str) else None


def _packages(
    path: Path, pin: str, definition: ImageDefinition, role: Role, group: Raw, cluster: Raw, example: str
) -> Iterator[InvalidValue]:
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
        remedy = f"pin an image with packages.{name}{example}, or build one: node-images/{definition.name}.yaml"
        yield InvalidValue(path, pin, f"carries no {name}, {why}", remedy)


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


def _disk_controller(path: Path, pin: str, definition: ImageDefinition, size: VmSize, example: str = "") -> Iterator[InvalidValue]:
    """Yield a pin of an image that does not boot from the NVMe disk controller of a VM size."""
    if size.disk_controller == "NVMe" and not definition.nvme_disk_controller:
        reason = f"does not boot from the NVMe disk controller of {size.name}"
        yield InvalidValue(path, pin, reason, f"pin an image with nvme_disk_controller: true{example}, or choose a v5 size")


def _gpu_model(
    path: Path, pin: str, definition: ImageDefinition, size: VmSize, images: tuple[str, ...], sizes: tuple[str, ...]
) -> InvalidValue:
    """Return the error of an image for other GPU models than that of a VM size; images and sizes are those that the remedy may name."""
    models = " or ".join(definition.gpus)
    pinned = f"pin an image for {size.gpu}" + (f", for example {most_similar(pin, images)}" if images else "")
    other = f"choose a size with {models}" + (f", for example {most_similar(size.name, sizes)}" if sizes else "")
    tested = f"after a test add {size.gpu} to gpus in node-images/{definition.name}.yaml"
    reason = f"is for machines with {models}, and {size.name} has {size.gpu}"
    return InvalidValue(path, pin, reason, f"{pinned}; or {other}; or {tested}")


def _kubernetes(path: Path, pin: str, definition: ImageDefinition, cluster: Raw, example: str) -> Iterator[InvalidValue]:
    """Yield a pin of an image whose Kubernetes version does not match the cluster's."""
    expected = cluster.get("kubernetes")
    if not isinstance(expected, str) or not VERSION.fullmatch(expected):
        return
    kubernetes, kubelet = definition.packages.kubernetes, definition.packages.kubelet
    if kubernetes and kubernetes != expected:
        other = example or f', or write kubernetes: "{kubernetes}"'
        reason = f"carries Kubernetes {kubernetes}, the cluster is {expected}"
        yield InvalidValue(path, pin, reason, f"pin an image with the cluster's version{other}")
    if kubelet and not 0 <= _minor(expected) - _minor(kubelet) <= 1:
        other = example or f', or write kubernetes: "{kubelet}"'
        reason = f"carries kubelet {kubelet}, the cluster is {expected}"
        remedy = f"pin an image whose kubelet has the cluster's minor version or the one before it{other}"
        yield InvalidValue(path, pin, reason, remedy)


def _minor(version: str) -> int:
    """Return the minor number of a Kubernetes version."""
    return int(version.split(".")[1])
