"""The program's own objects of region dev, each passed through every call in a real cluster without them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from api_client import Api, eventually
from objects_made import Made, Objects
from running_plane import RunningPlane

from rehearsal.local_cluster.objects.program_objects import PREFIX, PROVIDER
from rehearsal.program.graph import Resource, reveal
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import kind_of


@pytest.fixture(scope="module")
def registered(bare_plane: RunningPlane) -> tuple[Resource, ...]:
    """Return the objects that the program registers for the cluster, in its order."""
    (provider,) = bare_plane.graph.of_type(PROVIDER)
    return tuple(one for one in bare_plane.graph if one.type.startswith(PREFIX) and one.provider == provider.urn)


def test_every_object_of_the_region_lives_through_all_calls(objects: Objects, api: Api, registered: tuple[Resource, ...]) -> None:
    assert len(registered) > 50
    made: list[Made] = [objects.make(one.type, dict(one.inputs), one.name) for one in registered]

    def lives(resource: Resource, one: Made) -> None:
        assert not objects.differing(one, dict(resource.inputs)).detailedDiff, resource.name
        refreshed = objects.refreshed(one)
        assert refreshed is not None
        # What a refresh reads is what the program says, so that the next update has nothing to do.
        assert not objects.differing(refreshed, dict(resource.inputs)).detailedDiff, resource.name
        assert objects.change(refreshed, dict(resource.inputs)).uid == one.uid

    spaces = [one for one in made if one.type.endswith(":Namespace")]
    with ThreadPoolExecutor(16) as engine:
        list(engine.map(lives, registered, made))
        list(engine.map(objects.remove, [one for one in made if one not in spaces]))
        list(engine.map(objects.remove, spaces))
    for one in made:
        # The end of what is marked with skipAwait nobody waits for either.
        eventually(lambda: objects.refreshed(one) is None, f"{one.id} is gone")  # noqa: B023
    left = {item["metadata"]["name"] for item in api.request("GET", "/api/v1/namespaces").body["items"]}
    assert not left.intersection(one.id for one in spaces)


def test_no_object_of_the_region_differs_in_kind_from_what_the_cluster_serves(objects: Objects, registered: tuple[Resource, ...]) -> None:
    for one in registered:
        checked = objects.checked(one.type, dict(one.inputs), name=one.name)
        assert ("namespace" in reveal(checked["metadata"])) is kind_of(one.type).namespaced
