"""Child resources that their parent's body lists: subnets of a network, rules of a security group, routes of a route table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.network.network_resource_type import NetworkResourceType, check_names, properties_of
from rehearsal.azure.references import references
from rehearsal.azure.resource import SUCCEEDED, Json, Resource

ListedChildren = Mapping[str, tuple[ArmId, Json]]
"""Children that a body lists: id and body by key."""


def listed_children(arm_id: ArmId, body: Json, collection: str) -> ListedChildren | None:
    """Return the children that a body lists in a collection, None if the body has no such list; AzureError for a repeated name."""
    items = properties_of(body).get(collection)
    if items is None:
        return None
    check_names(arm_id, items)
    ids = [parse(f"{arm_id.text}/{collection}/{item['name']}") for item in items]
    return {one.key: (one, {"properties": deepcopy(properties_of(item))}) for one, item in zip(ids, items, strict=True)}


def existing_children(cloud: Cloud, parent_key: str, collection: str) -> Iterator[Resource]:
    """Yield the existing children of a collection, in the order of their creation."""
    below = f"{parent_key}/{collection.lower()}/"
    return (cloud.resources[key] for key in list(cloud.index.children(parent_key)) if key.startswith(below))


def siblings(cloud: Cloud, arm_id: ArmId) -> list[Resource]:
    """Return the other existing children of the same parent and collection."""
    found = existing_children(cloud, (arm_id.parent or "").lower(), arm_id.type.rpartition("/")[2])
    return [one for one in found if one.key != arm_id.key]


def check_removed_children(cloud: Cloud, arm_id: ArmId, children: ListedChildren, collection: str) -> None:
    """Refuse a list that leaves out a child that cannot be deleted."""
    for part in existing_children(cloud, arm_id.key, collection):
        if part.key not in children:
            cloud.check_deletion(part)


def replace_children(cloud: Cloud, parent: Resource, children: ListedChildren | None, collection: str) -> None:
    """Replace the children by those that the parent's body listed, and remove the list from the body. A GET reads the children
    themselves.
    """
    parent.properties.pop(collection, None)
    cloud.index.add(parent.id, references(parent.body, parent.key))
    if children is None:
        return
    for part in existing_children(cloud, parent.key, collection):
        if part.key not in children:
            cloud.remove(part)
    for arm_id, body in children.values():
        store_child(cloud, arm_id, body, parent.owner)


def store_child(cloud: Cloud, arm_id: ArmId, body: Json, owner: str) -> Resource:
    """Store a child at once, completed by its resource type, without repeating the checks of the parent's PUT."""
    kind = cloud.resource_type_of(arm_id)
    resource = cloud.resources.get(arm_id.key)
    if resource is not None and resource.sent == body:
        return resource
    before = resource.body if resource else None
    known = {"id": resource.id.text if resource else arm_id.text, "name": arm_id.name, "type": arm_id.type}
    complete = {**kind.complete(cloud, arm_id, body, resource), **known}
    if resource is None:
        resource = cloud.resources[arm_id.key] = Resource(arm_id, complete, body, owner, cloud.now, cloud.now)
    else:
        resource.body, resource.sent, resource.changed = complete, body, cloud.now
        resource.version += 1
    cloud.index.add(arm_id, references(complete, arm_id.key))
    kind.accepted(cloud, resource, before)
    cloud.set_provisioning_state(resource, SUCCEEDED)
    return resource


def children_views(cloud: Cloud, parent: Resource, collection: str) -> list[Json]:
    """Return the children as a GET of their parent lists them."""
    return [cloud.resource_type_of(part.id).view(cloud, part, {}) for part in existing_children(cloud, parent.key, collection)]


def sent_with_children(cloud: Cloud, parent: Resource, collection: str) -> Json:
    """Return the parent's body as it was sent, with its present children: the base of a PATCH."""
    sent = deepcopy(parent.sent)
    children = [{"name": part.id.name, **deepcopy(part.sent)} for part in existing_children(cloud, parent.key, collection)]
    sent.setdefault("properties", {})[collection] = children
    return sent


class ListingResourceType(NetworkResourceType):
    """A resource whose body replaces the children of one collection; a body without the list deletes them."""

    collection: str

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Replace the children by those of the body."""
        replace_children(cloud, resource, listed_children(resource.id, resource.body, self.collection) or {}, self.collection)

    def patch_base(self, cloud: Cloud, resource: Resource) -> Json:
        """Return the last PUT with the present children, which a PATCH preserves."""
        return sent_with_children(cloud, resource, self.collection)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with the present children."""
        shown = super().view(cloud, resource, query)
        return {**shown, "properties": {**shown["properties"], self.collection: children_views(cloud, resource, self.collection)}}
