"""Assumed captures: resource ids for images that have no capture in the region's location.

Only the embedded Azure receives these ids. Modules of stacks and components cannot import this module (pyproject.toml), so the program of a
real deployment never has them.
"""

from __future__ import annotations

from dataclasses import replace

from components.plan import naming
from components.plan.model import ClusterPlan, ImagePlan, RegionPlan

RESOURCE_GROUP = "assumed-captures"


def with_assumed_captures(plan: RegionPlan) -> RegionPlan:
    """Return the plan with an assumed id for each missing capture; the same object if no capture is missing."""
    if not plan.pins_without_capture:
        return plan
    subscription = plan.spec.subscription
    images = tuple(_image(subscription, image) for image in plan.gallery.images)
    clusters = tuple(_cluster(subscription, cluster) for cluster in plan.clusters)
    return replace(plan, gallery=replace(plan.gallery, images=images), clusters=clusters)


def _cluster(subscription: str, cluster: ClusterPlan) -> ClusterPlan:
    return replace(
        cluster,
        api_servers=replace(cluster.api_servers, image=_image(subscription, cluster.api_servers.image)),
        etcd=replace(cluster.etcd, image=_image(subscription, cluster.etcd.image)),
        events_etcd=replace(cluster.events_etcd, image=_image(subscription, cluster.events_etcd.image)),
        pools=tuple(replace(pool, image=_image(subscription, pool.image)) for pool in cluster.pools),
    )


def _image(subscription: str, image: ImagePlan) -> ImagePlan:
    if image.capture is not None:
        return image
    name = f"{image.definition.name}-{image.version}"
    return replace(image, capture=naming.resource_id(subscription, RESOURCE_GROUP, "Microsoft.Compute", "images", name))
