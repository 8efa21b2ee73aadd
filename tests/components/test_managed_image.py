"""Machines use a managed image directly, and the gallery has no copy of it."""

from __future__ import annotations

from components.plan.model import RegionPlan
from components.plan.region import plan_region
from components.spec.images import ImageCatalog, ImageStore
from rehearsal.checks import cross_check
from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.graph import Graph
from rehearsal.program.run import run_program
from stacks.load import load_catalog, load_region
from stacks.program import make

GROUP = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/builds/providers/Microsoft.Compute/images"
MANAGED = ("cpu", "api-server", "etcd")


def _catalog() -> ImageCatalog:
    """The shipped catalog, with the images of every kind of machine kept as managed images."""
    catalog = load_catalog()
    stores = {name: catalog.definitions[name].model_copy(update={"store": ImageStore.MANAGED_IMAGE}) for name in MANAGED}
    captures = {
        name: tuple(
            entry.model_copy(update={"captures": dict.fromkeys(entry.captures, f"{GROUP}/{name}-{entry.version}")})
            for entry in catalog.published[name]
        )
        for name in MANAGED
    }
    return catalog.model_copy(update={"definitions": catalog.definitions | stores, "published": catalog.published | captures})


def _stacks(plan: RegionPlan) -> tuple[Graph, Graph]:
    backend = AcceptingCloud(tenant=plan.spec.access.tenant)
    base = run_program(lambda: make(plan, plan.base_stack), "gpufleet", plan.base_stack, backend=backend)
    outputs = {plan.base_stack: base.stack_outputs}
    return base, run_program(lambda: make(plan, plan.stack), "gpufleet", plan.stack, backend=backend, stack_outputs=outputs)


def test_machines_are_made_from_a_managed_image_and_the_gallery_does_not_hold_it() -> None:
    catalog = _catalog()
    plan = plan_region(load_region("dev", catalog), catalog)
    base, clusters = _stacks(plan)
    used = [
        item.inputs["virtualMachineProfile"]["storageProfile"] for item in clusters.of_type("azure-native:compute:VirtualMachineScaleSet")
    ]
    used += [item.inputs["storageProfile"] for item in clusters.of_type("azure-native:compute:VirtualMachine")]
    managed = {storage["imageReference"]["id"].rpartition("-")[0] for storage in used if storage["imageReference"]["id"].startswith(GROUP)}
    assert managed == {f"{GROUP}/{name}" for name in MANAGED}
    stored = {item.inputs["galleryImageName"] for item in base.of_type("azure-native:compute:GalleryImage")}
    assert stored
    assert not stored & set(MANAGED)
    assert cross_check(plan, base, clusters) == ()
