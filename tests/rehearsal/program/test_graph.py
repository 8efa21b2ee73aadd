"""A graph answers questions about its resources, and prints itself the same way every time without a secret."""

import json

from rehearsed_regions import rehearsed

from rehearsal.program.graph import Graph, Resource, Secret, mask, reveal

SUBNET = "azure-native:network:Subnet"


def resource(name: str, parent: str | None = None, **inputs: object) -> Resource:
    return Resource(urn=f"urn::{name}", type=SUBNET, name=name, parent=parent, custom=True, id=f"/{name}", inputs=inputs, outputs={})


def test_secrets_are_masked_and_revealed_at_any_depth() -> None:
    value = {"a": [Secret({"b": Secret("inner")}), 1], "c": (Secret("x"), "plain")}
    assert mask(value) == {"a": ["[secret]", 1], "c": ["[secret]", "plain"]}
    assert reveal(value) == {"a": [{"b": "inner"}, 1], "c": ["x", "plain"]}
    assert "inner" not in repr(value)


def test_the_text_does_not_depend_on_the_order_of_registration_or_of_keys() -> None:
    first, second = resource("a", b=1, a=2), resource("b")
    swapped = resource("a", a=2, b=1)
    assert Graph((first, second), {"x": 1, "y": 2}).to_json() == Graph((second, swapped), {"y": 2, "x": 1}).to_json()


def test_the_text_holds_what_has_a_value_and_nothing_else() -> None:
    graph = Graph((resource("a", count=0, off=False, token=Secret("s3cret")),), {"out": Secret(1)})
    assert json.loads(graph.to_json()) == {
        "resources": {
            "urn::a": {
                "type": SUBNET,
                "name": "a",
                "custom": True,
                "id": "/a",
                "inputs": {"count": 0, "off": False, "token": "[secret]"},
            }
        },
        "stackOutputs": {"out": "[secret]"},
    }


def test_resources_are_found_by_type_by_urn_and_by_parent() -> None:
    top, middle, leaf = resource("top"), resource("middle", "urn::top"), resource("leaf", "urn::middle")
    graph = Graph((top, middle, leaf), {})
    assert graph.of_type(SUBNET) == (top, middle, leaf)
    assert graph.of_type("none") == ()
    assert graph.by_urn["urn::leaf"] is leaf
    assert (graph.children("urn::top"), graph.descendants("urn::top")) == ((middle,), (middle, leaf))
    assert len(graph) == 3


def test_created_resources_are_those_that_up_counts() -> None:
    region = rehearsed("dev")
    assert len(region.base.created_resources) + len(region.clusters.created_resources) == 245
