"""An image that the machines cannot be made from, or that lacks what their role needs, is refused at its pin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from components.plan.region import plan_region
from components.plan.validation import validate_region
from components.spec.images import ImageCatalog, ImageStore
from rehearsal.local_up.assumed_captures import with_assumed_captures
from stacks.load import REGIONS, load_catalog, load_plan, load_region, region_names

CATALOG = load_catalog()
MACHINE = "/subscriptions/3f1d2c5a-6b7e-4c8d-9e0f-1a2b3c4d5e6f/resourceGroups/builds/providers/Microsoft.Compute/virtualMachines/build-7"


def found(catalog: ImageCatalog, region: str = "southcentralus", **pool: Any) -> list[tuple[str, str, str]]:
    """Return the invalid values of a shipped region with a changed first pool: path, reason and remedy."""
    document = yaml.safe_load((REGIONS / f"{region}.yaml").read_text())
    document["clusters"][0]["pools"][0] |= pool
    result = validate_region(document, region, catalog, {})
    return [("/".join(map(str, item.path)), item.reason, item.remedy) for item in result]


def with_store(name: str, store: ImageStore, capture: str | None = None) -> ImageCatalog:
    """The shipped catalog with one image kept in another store, and captured as another thing."""
    definition = CATALOG.definitions[name].model_copy(update={"store": store})
    entries = tuple(
        entry.model_copy(update={"captures": {place: capture or one for place, one in entry.captures.items()}})
        for entry in CATALOG.published[name]
    )
    return CATALOG.model_copy(
        update={"definitions": {**CATALOG.definitions, name: definition}, "published": {**CATALOG.published, name: entries}}
    )


def captured_elsewhere(name: str, store: ImageStore = ImageStore.GALLERY) -> ImageCatalog:
    """The shipped catalog with one image in a store, captured in another location than southcentralus only."""
    catalog = with_store(name, store)
    entries = tuple(entry.model_copy(update={"captures": {"swedencentral": MACHINE}}) for entry in CATALOG.published[name])
    return catalog.model_copy(update={"published": {**catalog.published, name: entries}})


def without(name: str, package: str) -> ImageCatalog:
    """The shipped catalog with one image that lacks a package."""
    definition = CATALOG.definitions[name]
    packages = definition.packages.model_copy(update={package: None})
    return CATALOG.model_copy(update={"definitions": {**CATALOG.definitions, name: definition.model_copy(update={"packages": packages})}})


@pytest.mark.parametrize("region", region_names())
def test_no_shipped_region_contradicts_the_catalog(region: str) -> None:
    assert found(CATALOG, region) == []


def test_a_managed_image_of_which_a_machine_was_captured_is_refused_at_every_pin() -> None:
    result = found(with_store("nd-h100", ImageStore.MANAGED_IMAGE, MACHINE))
    assert [place for place, _, _ in result] == [f"clusters/{cluster}/pools/0/image" for cluster in range(3)]
    assert {(reason, remedy) for _, reason, remedy in result} == {
        (
            "is a managed image, but its build captured build-7 of virtualMachines",
            "capture a managed image, or write store: gallery in node-images/nd-h100.yaml",
        )
    }


def test_a_gallery_takes_a_captured_machine_and_a_managed_image_alike() -> None:
    assert found(with_store("nd-h100", ImageStore.GALLERY, MACHINE)) == []
    assert found(with_store("nd-h100", ImageStore.MANAGED_IMAGE)) == []


def test_an_image_that_is_captured_elsewhere_only_is_valid_and_planned_without_a_capture() -> None:
    catalog = captured_elsewhere("nd-a100")
    assert found(catalog) == []
    plan = plan_region(load_region("southcentralus", CATALOG), catalog)
    assert plan.pins_without_capture == ("nd-a100@2026.11.0",)
    assert [image.pin for image in plan.gallery.images if image.definition.name == "nd-a100"] == ["nd-a100@2026.11.0"]


@pytest.mark.parametrize("store", list(ImageStore))
def test_only_the_embedded_azure_gets_an_assumed_id_for_a_missing_capture(store: ImageStore) -> None:
    plan = plan_region(load_region("southcentralus", CATALOG), captured_elsewhere("nd-a100", store))
    assumed = with_assumed_captures(plan)
    assert assumed.pins_without_capture == ()
    pool, filled = plan.clusters[2].pools[1].image, assumed.clusters[2].pools[1].image
    assert (pool.capture, filled.capture) == (
        None,
        f"/subscriptions/{plan.spec.subscription}/resourceGroups/assumed-captures/providers/Microsoft.Compute/images/nd-a100-2026.11.0",
    )
    assert filled.machine_image_id == (filled.version_id if store is ImageStore.GALLERY else filled.capture)
    assert replace(filled, capture=None) == pool
    assert [one for one in assumed.gallery.images if one.pin != pool.pin] == [one for one in plan.gallery.images if one.pin != pool.pin]


def test_a_plan_with_all_captures_is_not_changed() -> None:
    plan = load_plan("southcentralus")
    assert with_assumed_captures(plan) is plan


@pytest.mark.parametrize(
    ("name", "package", "why"),
    [
        ("nd-h100", "nvidia_driver", "which the GPUs of Standard_ND96isr_H100_v5 need"),
        ("nd-h100", "nvidia_container_toolkit", "which the GPUs of Standard_ND96isr_H100_v5 need"),
        ("nd-h100", "doca_ofed", "which InfiniBand needs"),
        ("cpu", "containerd", "which the role node needs"),
        ("nd-a100", "kubelet", "which the role node needs"),
        ("etcd", "etcd", "which the role etcd needs"),
        ("etcd", "gpufleet", "which the role etcd needs"),
        ("api-server", "kubernetes", "which the role api-server needs"),
        ("api-server", "gpufleet", "which the role api-server needs"),
    ],
)
def test_an_image_without_what_its_role_or_machine_needs_is_refused(name: str, package: str, why: str) -> None:
    result = found(without(name, package))
    assert result
    assert {reason for _, reason, _ in result} == {f"carries no {package}, {why}"}
    assert all(place.endswith("/image") and f"packages.{package}" in remedy for place, _, remedy in result)


def test_an_image_for_machines_without_gpu_is_refused_for_those_with() -> None:
    result = found(CATALOG, image="cpu@2026.11.0")
    assert [reason for _, reason, _ in result] == ["carries no nvidia_driver, which the GPUs of Standard_ND96isr_H100_v5 need"]


def test_infiniband_machines_over_ethernet_need_no_infiniband_driver() -> None:
    result = found(without("nd-h100", "doca_ofed"), interconnect="ethernet")
    assert [place for place, _, _ in result] == ["clusters/1/pools/0/image", "clusters/2/pools/0/image"]


def test_an_image_for_other_gpu_models_is_refused_with_a_size_that_it_is_for() -> None:
    (fault,) = found(CATALOG, vm_size="Standard_ND96isr_H200_v5")
    assert fault == (
        "clusters/0/pools/0/image",
        "is for machines with H100, and Standard_ND96isr_H200_v5 has H200",
        (
            "pin an image for H200; or choose a size with H100, for example Standard_ND96isr_H100_v5; or after a test add H200 to gpus in "
            "node-images/nd-h100.yaml"
        ),
    )


PLANE = "control_plane"


@pytest.mark.parametrize(
    ("region", "path", "value", "remedy"),
    [
        ("southcentralus", ("pools", 0, "vm_size"), "Standard_D96isr_H100_v5", "did you mean Standard_ND96isr_H100_v5?"),
        ("southcentralus", ("pools", 0, "vm_size"), "Standard_D96s_v6", "did you mean Standard_ND96isr_H100_v5?"),
        ("southcentralus", (PLANE, "api_servers", "vm_size"), "Standard_ND32s_v5", "did you mean Standard_D32s_v5?"),
        ("southcentralus", (PLANE, "etcd", "vm_size"), "Standard_D8s_v3", "did you mean Standard_L8s_v3?"),
        ("dev", ("pools", 0, "vm_size"), "Standard_NC4ads_v6", "did you mean Standard_D4ads_v6?"),
        ("dev", ("pools", 1, "vm_size"), "Standard_D24ads_v4", "did you mean Standard_NC24ads_A100_v4?"),
        ("southcentralus", ("pools", 0, "image"), "etcd-h100@2026.11.0", "did you mean nd-h100@2026.11.0?"),
        ("southcentralus", ("pools", 0, "image"), "etcd@2026.11.0", "did you mean nd-h100@2026.11.0?"),
        ("southcentralus", ("pools", 0, "image"), "cpu@2026.12.0", "did you mean nd-h100@2026.11.0?"),
        ("southcentralus", ("pools", 0, "image"), "nd-h100@2026.12.0", "published: nd-h100@2026.10.0, nd-h100@2026.11.0"),
        ("dev", (PLANE, "etcd", "image"), "etc@2026.11.0", "did you mean etcd@2026.11.0?"),
    ],
)
def test_a_suggested_size_or_image_is_one_that_is_valid_there(region: str, path: tuple[str | int, ...], value: str, remedy: str) -> None:
    document = yaml.safe_load((REGIONS / f"{region}.yaml").read_text())
    *parents, last = ("clusters", 0, *path)
    node = document
    for part in parents:
        node = node[part]
    node[last] = value
    (result,) = validate_region(document, region, CATALOG, {})
    assert (result.path, result.remedy) == (("clusters", 0, *path), remedy)
    suggested = [word.strip("?,") for word in remedy.split(" ")][-1]
    node[last] = suggested
    assert validate_region(document, region, CATALOG, {}) == ()


def test_the_remedies_of_an_unsuitable_image_name_an_image_or_version_that_fits() -> None:
    ((_, _, remedy),) = found(CATALOG, "dev", image="etcd@2026.11.0")
    assert remedy == "did you mean cpu@2026.11.0?"
    gpu = {"vm_size": "Standard_NC24ads_A100_v4", "image": "cpu@2026.11.0"}
    ((_, _, remedy),) = found(CATALOG, "dev", **gpu)
    assert remedy == "pin an image with packages.nvidia_driver, for example nc-a100@2026.11.0, or build one: node-images/cpu.yaml"
    document = yaml.safe_load((REGIONS / "dev.yaml").read_text())
    document["clusters"][0]["kubernetes"] = "1.38.0"
    remedies = {item.remedy.rpartition(", or ")[2] for item in validate_region(document, "dev", CATALOG, {})}
    assert remedies == {'write kubernetes: "1.36.3"'}
