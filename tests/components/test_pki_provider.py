from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pulumi.runtime.rpc import UNKNOWN

from components.pki_provider import LEAF_LIFETIME, SCHEMA, AuthorityProvider, LeafProvider
from components.x509 import Authority, Subject, issue_leaf

SUBJECT = Subject("etcd-0", (), ("etcd-0.dev.internal",), ("10.48.0.10",), ("server", "client"))


def new_authority(generation: int = 1, common_name: str = "dev etcd CA") -> dict[str, Any]:
    return dict(AuthorityProvider().create({"common_name": common_name, "generation": generation}).outs or {})


def leaf_inputs(authority: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Inputs of a leaf, as the engine sends them."""
    said = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(SUBJECT).items()}
    return {**said, "schema": SCHEMA, "ca_certificate": authority["certificate"], "ca_key": authority["private_key"], **changes}


def state_of(inputs: dict[str, Any]) -> dict[str, Any]:
    return dict(LeafProvider().create(inputs).outs or {})


def aged(inputs: dict[str, Any], days: int) -> dict[str, Any]:
    """State of a leaf issued some days ago."""
    issued = issue_leaf(
        SUBJECT, Authority(inputs["ca_certificate"], inputs["ca_key"]), LEAF_LIFETIME, datetime.now(UTC) - timedelta(days=days)
    )
    return {**state_of(inputs), **asdict(issued)}


def test_a_second_up_changes_nothing() -> None:
    inputs = leaf_inputs(new_authority())
    assert LeafProvider().diff("leaf", state_of(inputs), inputs).changes is False


@pytest.mark.parametrize(("days", "due"), [(0, False), (243, False), (244, True), (400, True)])
def test_a_leaf_is_reissued_in_place_in_the_last_third_of_its_life(days: int, due: bool) -> None:
    inputs = leaf_inputs(new_authority())
    result = LeafProvider().diff("leaf", aged(inputs, days), inputs)
    assert (result.changes, result.replaces) == (due, [])


@pytest.mark.parametrize(
    "change",
    [
        {"common_name": "etcd-1"},
        {"organizations": ["system:masters"]},
        {"dns_names": ["etcd-0.dev.internal", "localhost"]},
        {"addresses": ["10.48.0.11"]},
        {"usages": ["client"]},
        {"schema": SCHEMA + 1},
        {"ca_certificate": UNKNOWN},
    ],
)
def test_a_leaf_is_reissued_in_place_when_what_it_says_changes(change: dict[str, Any]) -> None:
    inputs = leaf_inputs(new_authority())
    result = LeafProvider().diff("leaf", state_of(inputs), {**inputs, **change})
    assert (result.changes, result.replaces) == (True, [])


def test_a_reissued_leaf_keeps_its_key_under_the_same_authority_and_lives_a_full_life_again() -> None:
    inputs = leaf_inputs(new_authority())
    before = aged(inputs, 300)
    after = dict(LeafProvider().update("leaf", before, inputs).outs or {})
    assert after["private_key"] == before["private_key"]
    assert after["certificate"] != before["certificate"]
    assert LeafProvider().diff("leaf", after, inputs).changes is False


def test_a_leaf_under_another_authority_gets_another_key() -> None:
    before = state_of(leaf_inputs(new_authority()))
    after = dict(LeafProvider().update("leaf", before, leaf_inputs(new_authority(generation=2))).outs or {})
    assert after["private_key"] != before["private_key"]


def test_the_authority_s_key_is_not_kept_with_the_leaf() -> None:
    authority = new_authority()
    assert authority["private_key"] not in state_of(leaf_inputs(authority)).values()


def test_a_changed_authority_is_refused_with_the_way_to_ask_for_it() -> None:
    olds = {"common_name": "dev etcd CA", "generation": 1}
    (failure,) = AuthorityProvider().check(olds, {"common_name": "prod etcd CA", "generation": 1}).failures
    assert failure.property == "common_name"
    assert failure.reason == (
        "changes from 'dev etcd CA' to 'prod etcd CA', which would replace the authority and cut off all clients that trust it;"
        " to replace it, raise generation from 1 to 2"
    )


def test_an_authority_that_was_replaced_does_not_come_back() -> None:
    name = "dev etcd CA"
    (failure,) = AuthorityProvider().check({"common_name": name, "generation": 2}, {"common_name": name, "generation": 1}).failures
    assert (failure.property, failure.reason[:20]) == ("generation", "falls from 2 to 1, b")


@pytest.mark.parametrize("common_name", ["dev etcd CA", "prod etcd CA"])
def test_a_higher_generation_replaces_the_authority(common_name: str) -> None:
    news = {"common_name": common_name, "generation": 2}
    assert AuthorityProvider().check({"common_name": "dev etcd CA", "generation": 1}, news).failures == []
    result = AuthorityProvider().diff("ca", new_authority(), news)
    assert (result.changes, result.replaces) == (True, ["generation"])


def test_an_authority_is_made_once_however_old_it_gets() -> None:
    olds = {**new_authority(), "not_after": "2000-01-01T00:00:00+00:00"}
    assert AuthorityProvider().diff("ca", olds, {"common_name": "dev etcd CA", "generation": 1}).changes is False
