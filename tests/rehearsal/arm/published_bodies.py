"""Bodies made at random of Azure's published types, with values that fit, nearly fit, or do not fit at all."""

from __future__ import annotations

from typing import Any

from azure_types import READ_ONLY, REQUIRED, TypeFile
from hypothesis import strategies as st

TEXT = st.text(max_size=12) | st.sampled_from(
    ["", "a", "southcentralus", "10.0.0.0/8", "10.1.2.0/24", "10.1.2.3", "::1", "-1", "2026-01-01T00:00:00Z", "\ud83d\ude00", "x" * 300]
)
NUMBER = st.integers(-3, 70_000) | st.sampled_from([2**31, 2**63, 2**80, -(2**40)])
ODD = st.none() | st.booleans() | NUMBER | TEXT | st.just([]) | st.just({}) | st.floats(allow_nan=False, allow_infinity=False)


def bodies(file: TypeFile, kind: dict[str, Any], ids: list[str], room: int = 5) -> st.SearchStrategy[Any]:
    """Values of a published type; ids are resource ids that exist."""
    fitting = _fitting(file, kind, ids, room)
    # One place in twenty holds something else.
    return st.integers(0, 19).flatmap(lambda number: ODD if number == 0 else fitting)


def _fitting(file: TypeFile, kind: dict[str, Any], ids: list[str], room: int) -> st.SearchStrategy[Any]:
    match kind["$type"]:
        case "ObjectType":
            return _object(file, kind, ids, room)
        case "DiscriminatedObjectType":
            chosen = st.sampled_from(sorted(kind["elements"]))
            return chosen.flatmap(lambda name: bodies(file, file.at(kind["elements"][name]), ids, room))
        case "ArrayType":
            return st.lists(bodies(file, file.at(kind["itemType"]), ids, room - 1), max_size=2 if room > 0 else 0)
        case "UnionType":
            return st.one_of([bodies(file, file.at(one), ids, room) for one in kind["elements"]])
        case "StringLiteralType":
            return st.just(kind["value"])
        case "BooleanType":
            return st.booleans()
        case "IntegerType":
            return NUMBER
        case "StringType":
            return TEXT | st.sampled_from(ids)
        case _:
            return ODD


@st.composite
def _object(draw: st.DrawFn, file: TypeFile, kind: dict[str, Any], ids: list[str], room: int) -> dict[str, Any]:
    known = {key: one for key, one in kind["properties"].items() if not one["flags"] & READ_ONLY}
    required = [key for key, one in known.items() if one["flags"] & REQUIRED]
    others = sorted(set(known) - set(required))
    chosen = draw(st.lists(st.sampled_from(others), unique=True, max_size=4)) if others and room > 0 else []
    expected = required if room > 0 else []
    made = {key: draw(bodies(file, file.at(known[key]["type"]), ids, room - 1)) for key in (*expected, *chosen)}
    if "properties" in known and "properties" not in made and room > 0:
        made["properties"] = draw(bodies(file, file.at(known["properties"]["type"]), ids, room - 1))
    return made
