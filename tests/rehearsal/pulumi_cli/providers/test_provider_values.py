"""The values of Pulumi's protocol become Python's and back."""

from __future__ import annotations

import pytest
from google.protobuf import struct_pb2  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from rehearsal.program.graph import Secret
from rehearsal.program.pulumi_values import (
    ARCHIVE,
    ASSET,
    OUTPUT,
    REFERENCE,
    SIGNATURE,
    UNKNOWN,
    UNKNOWNS,
    ValueFormatError,
    decode,
    encode,
    has_secret,
    has_unknown,
    secret_like,
)

TEXT = st.text('aZ.[]"$\\\0ä\U0001f600', max_size=5)
PLAIN = (
    st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not x.is_integer())
    | TEXT
)
VALUES = st.recursive(
    PLAIN | st.builds(Secret, PLAIN) | st.just(UNKNOWN),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(TEXT, VALUES, max_size=3))
def test_what_is_written_is_read_as_it_was(properties: dict[str, object]) -> None:
    assert decode(struct_pb2.Struct.FromString(encode(properties).SerializeToString())) == properties


def test_nulls_are_left_out_of_objects_and_kept_in_lists() -> None:
    assert decode(encode({"a": None, "b": {"c": None, "d": [None, 1]}})) == {"b": {"d": [None, 1]}}


@pytest.mark.parametrize("spelling", sorted(UNKNOWNS))
def test_every_spelling_of_unknown_is_the_same(spelling: str) -> None:
    assert decode(encode({"a": [spelling]})) == {"a": [UNKNOWN]}


def test_output_values_and_references_are_what_they_stand_for() -> None:
    assert decode(encode({"a": {SIGNATURE: OUTPUT, "value": 1, "secret": True}})) == {"a": Secret(1)}
    assert decode(encode({"a": {SIGNATURE: OUTPUT, "value": 1, "dependencies": ["urn"]}})) == {"a": 1}
    assert decode(encode({"a": {SIGNATURE: OUTPUT}})) == {"a": UNKNOWN}
    assert decode(encode({"a": {SIGNATURE: REFERENCE, "urn": "u", "id": "i"}})) == {"a": "i"}
    assert decode(encode({"a": {SIGNATURE: REFERENCE, "urn": "u", "id": ""}})) == {"a": UNKNOWN}
    assert decode(encode({"a": {SIGNATURE: REFERENCE, "urn": "u"}})) == {"a": "u"}


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({SIGNATURE: ASSET, "text": "x"}, "a.b[0]: is an asset or an archive"),
        ({SIGNATURE: ARCHIVE, "uri": "x"}, "a.b[0]: is an asset or an archive"),
        ({SIGNATURE: "?"}, "a.b[0]: is a value of a kind that is not known here"),
        ({SIGNATURE: "1b47061264138c4ac30d75fd1eb44270"}, "a.b[0]: is a secret without a value"),
        (float("nan"), "a.b[0]: nan is not a JSON number"),
        (float("-inf"), "a.b[0]: -inf is not a JSON number"),
    ],
)
def test_what_no_resource_takes_is_refused_with_its_path(value: object, sentence: str) -> None:
    with pytest.raises(ValueFormatError) as refused:
        decode(encode({"a": {"b": [value]}}))
    assert str(refused.value).startswith(sentence)


def test_what_is_no_value_of_the_protocols_cannot_be_answered() -> None:
    with pytest.raises(TypeError, match="set"):
        encode({"a": {1, 2}})


def test_secrets_and_unknowns_are_found_at_every_depth() -> None:
    assert has_unknown({"a": [Secret({"b": UNKNOWN})]})
    assert not has_unknown({"a": [1, "x"]})
    assert has_secret({"a": [{"b": Secret(1)}]})
    assert not has_secret({"a": [{"b": 1}]})


def test_outputs_are_secret_where_the_inputs_are() -> None:
    inputs = {"a": Secret(1), "b": {"c": Secret("x"), "d": 1}, "e": [Secret(1), 2], "f": [Secret(1)]}
    outputs = {"a": 5, "b": {"c": "y", "d": 2, "n": 3}, "e": [1, 2], "f": [1, 2], "g": 0}
    expected = {"a": Secret(5), "b": {"c": Secret("y"), "d": 2, "n": 3}, "e": [Secret(1), 2], "f": Secret([1, 2]), "g": 0}
    assert secret_like(outputs, inputs) == expected
