"""Conversion of pydantic's validation errors to problems of a file."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from typing import Annotated, Any, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_core.core_schema import ErrorType

from components.spec.types import EXAMPLES, FORMS
from stacks.file_problems import (
    MAX_PROBLEMS,
    WIDE_SPACE,
    FileProblem,
    Path,
    Position,
    ProblemKind,
    nearest_position,
    path_text,
    problem,
    shown,
)
from stacks.model_paths import ErrorLocation, known_keys, locate
from stacks.pattern_faults import pattern_fault
from stacks.strict_yaml import Document
from stacks.yaml_scalars import QUOTE_IT, without_quotes

LONGEST_KEY = 100
"""Maximum characters of an unknown key in comparisons with known keys, whose cost is the product of both lengths."""

SIMILAR = 0.65
"""Minimum similarity of an unknown key and the key that is suggested; tags and quotas have 0.6."""

BOUNDS = {
    "greater_than": ("gt", "must be more than", "give more than"),
    "greater_than_equal": ("ge", "is less than", "give at least"),
    "less_than": ("lt", "must be less than", "give less than"),
    "less_than_equal": ("le", "is more than", "give at most"),
    "multiple_of": ("multiple_of", "is no multiple of", "give a multiple of"),
}
LENGTHS = {
    "too_short": ("min_length", "entries", "fewer than", "give at least"),
    "too_long": ("max_length", "entries", "more than", "give at most"),
    "string_too_short": ("min_length", "characters", "fewer than", "give at least"),
    "string_too_long": ("max_length", "characters", "more than", "give at most"),
}
UNIT = {"entries": "entry", "characters": "character"}
TEXT, WHOLE, NUMBER, TRUTH, LIST, MAPPING = "text", "a whole number", "a number", "true or false", "a list", "a mapping"
EXPECTED = {
    "string_type": TEXT,
    "int_type": WHOLE,
    "int_parsing": WHOLE,
    "int_from_float": WHOLE,
    "float_type": NUMBER,
    "float_parsing": NUMBER,
    "bool_type": TRUTH,
    "bool_parsing": TRUTH,
    "list_type": LIST,
    "tuple_type": LIST,
    "set_type": LIST,
    "frozen_set_type": LIST,
    "dict_type": MAPPING,
    "model_type": MAPPING,
    "model_attributes_type": MAPPING,
}
HOW_TO_WRITE = {
    TEXT: "write text",
    WHOLE: "write digits alone, without quotes",
    NUMBER: "write a number, without quotes",
    TRUTH: "write true or false, without quotes",
    LIST: "write one `- entry` a line",
    MAPPING: "write one `key: value` a line",
}
UNKNOWN = "is not a known key"
BUILT_IN = frozenset(get_args(ErrorType))
"""Types of pydantic's built-in errors; other errors come from a model and have complete messages."""

PLAIN_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
NUMBER_AND_COMMENT = re.compile(r"([0-9]+)\s*(?://|--|;).*")
CHOICES = re.compile(r", | or ")
COLON_WITHOUT_SPACE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*:\S.*")


def model_problems(
    error: ValidationError, model: type[BaseModel], data: object, positions: Mapping[Path, Position], file: str
) -> list[tuple[Path, FileProblem]]:
    """Return the errors of a validation as problems with their paths, at most MAX_PROBLEMS + 1 of them.

    A path that is missing in the document gets the position of its nearest ancestor. For a union without discriminator, only the errors of
    the best matching member are reported. A missing key is not reported if an unknown key of its mapping is meant for it. The message of a
    ValueError from a validator has the form "reason; remedy"; unless the value is a list or mapping, the value is the subject of the reason
    ("is no UUID; write ..."). A PydanticCustomError has a complete message. The errors of a ValidationError from a validator are reported
    separately.
    """
    found = (details for details in error.errors(include_url=False) if not _miscounted(details))
    located = [(details, locate(model, details["loc"], data)) for details in found]
    best = list(islice(_best_members(located), MAX_PROBLEMS + 1))
    instead = _instead(best)
    problems = []
    for details, location in best:
        if details["type"] == "missing" and location.path in instead.values():
            continue
        path, value, reason, remedy = _describe(details, location)
        if path in instead:
            remedy = f"did you mean {instead[path][-1]}?"
        problems.append((path, problem(file, path, nearest_position(path, positions), value, reason, remedy, _kind(details, location))))
    return problems


def merge_problems(document: Document, found: Sequence[tuple[Path, FileProblem]]) -> list[FileProblem]:
    """Return the problems of a document and those that its model found, without those that only follow from others.

    The model gets an ambiguous scalar as text. Therefore the model's problem with it is not reported, but it decides the remedy.
    Problems inside a value that should be a list or text are not reported.
    """
    by_path = dict(found)
    refused = {path_text(path): path for path in document.refused}
    wrong = tuple(f"{one.path}{sign}" for _, one in found if one.path and ProblemKind.NOT_TEXT_OR_LIST in one.kind for sign in ".[")
    problems = []
    for one in document.problems:
        other = by_path.get(refused[one.path]) if one.path in refused else None
        if wrong and one.path.startswith(wrong):
            continue
        problems.append(_with_remedy_of_type(one, other) if ProblemKind.QUOTABLE in one.kind and one.path in refused else one)
    problems += [one for path, one in found if not any(path[:length] in document.refused for length in range(len(path) + 1))]
    return problems


def _with_remedy_of_type(ambiguous: FileProblem, other: FileProblem | None) -> FileProblem:
    """Return the problem of an ambiguous scalar with the remedy for the type that the model expects there.

    `other` is the model's problem with the scalar as text, None if it has none.
    """
    if other is None:
        return replace(ambiguous, remedy=QUOTE_IT)
    if ProblemKind.UNKNOWN_KEY in other.kind:
        return other
    first = without_quotes(ambiguous.remedy)
    return replace(ambiguous, remedy=first if first and ProblemKind.GENERAL_REMEDY in other.kind else other.remedy)


def _miscounted(details: ErrorDetails) -> bool:
    """Return True for a list that is long enough; pydantic counts only valid entries, and reports the invalid ones too."""
    return details["type"] == "too_short" and len(details["input"]) >= details["ctx"]["min_length"]


def _best_members(located: list[tuple[ErrorDetails, ErrorLocation]]) -> Iterator[tuple[ErrorDetails, ErrorLocation]]:
    """Yield the errors without those of union members other than the best one.

    The best member has the right type of value, then the right literals, then the fewest errors.
    """
    costs: dict[tuple[Path, tuple[str, ...]], dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0, 0]))
    for details, location in located:
        for choice in location.choices:
            cost = costs[choice.union, choice.before][choice.arm]
            cost[0] += location.path == choice.union and details["type"] in EXPECTED
            cost[1] += details["type"] == "literal_error"
            cost[2] += 1
    best = {union: min(arms, key=lambda arm: arms[arm]) for union, arms in costs.items()}
    return (entry for entry in located if all(best[choice.union, choice.before] == choice.arm for choice in entry[1].choices))


def _instead(found: Sequence[tuple[ErrorDetails, ErrorLocation]]) -> dict[Path, Path]:
    """Return the paths of unknown keys and of the missing keys that they are meant for.

    These are a similar key, or the only missing key of a mapping with one unknown key, if the value is valid there.
    """
    missing: dict[Path, list[ErrorLocation]] = defaultdict(list)
    unknown: dict[Path, list[tuple[ErrorDetails, ErrorLocation]]] = defaultdict(list)
    for details, location in found:
        if details["type"] == "missing":
            missing[location.path[:-1]].append(location)
        elif details["type"] == "extra_forbidden":
            unknown[location.path[:-1]].append((details, location))
    meant: dict[Path, Path] = {}
    for parent, keys in unknown.items():
        absent = {location.path: location for location in missing[parent]}
        for _, location in keys:
            near = (*parent, _nearest(location) or "")
            if near in absent:
                meant[location.path] = near
        left = [location for path, location in absent.items() if path not in meant.values()]
        other = [(details, location) for details, location in keys if location.path not in meant]
        if len(left) == len(other) == 1 and _nearest(other[0][1]) is None and _is_valid(left[0], other[0][0]["input"]):
            meant[other[0][1].path] = left[0].path
    return meant


def _is_valid(location: ErrorLocation, value: object) -> bool:
    """Return True if a value is valid for the field at a location."""
    if location.field is None:
        return False
    expected: Any = Annotated[location.field.annotation, location.field]
    try:
        TypeAdapter(expected).validate_json(json.dumps(value), strict=True)
    except ValidationError:
        return False
    return True


def _nearest(location: ErrorLocation) -> str | None:
    """Return the known key that is most similar to an unknown one."""
    if location.model is None:
        return None
    plain = {key.lower().replace("-", "_"): key for key in known_keys(location.model)}
    wrong = str(location.path[-1])[:LONGEST_KEY].lower().replace("-", "_")
    return next((plain[near] for near in get_close_matches(wrong, plain, n=1, cutoff=SIMILAR)), None)


def _describe(details: ErrorDetails, location: ErrorLocation) -> tuple[Path, str | None, str, str]:
    """Return path, value, reason and remedy."""
    given, context = details["input"], details.get("ctx", {})
    word, about = shown(given), _about(location)
    match details["type"]:
        case "missing":
            return location.path, None, "is missing", f"add it{about}"
        case "extra_forbidden":
            return location.path, word, UNKNOWN, _known(location)
        case "union_tag_not_found" if location.tags:
            path = (*location.path, context["discriminator"].strip("'"))
            return path, None, "is missing", f"write one of {', '.join(location.tags)}"
        case "union_tag_invalid" if location.tags:
            tag = context["tag"]
            return (*location.path, context["discriminator"].strip("'")), shown(tag), *_one_of(tag, location.tags)
        case "enum" | "literal_error":
            return location.path, word, *_one_of(given, [choice.strip("'") for choice in CHOICES.split(context["expected"])])
        case "string_pattern_mismatch":
            words = FORMS.get(context["pattern"], f"what matches {context['pattern']}")
            fault = pattern_fault(context["pattern"], EXAMPLES.get(context["pattern"], ""), given)
            return location.path, word, f"{word} {fault}", f"write {words}{about}"
        case kind if kind in BOUNDS:
            bound, wrong, right = BOUNDS[kind]
            limit = context[bound]
            limit = int(limit) if isinstance(limit, float) and limit.is_integer() else limit
            return location.path, word, f"{word} {wrong} {limit}", f"{right} {limit}{about}"
        case kind if kind in LENGTHS:
            bound, unit, wrong, right = LENGTHS[kind]
            counted = f"{len(given)} {UNIT[unit] if len(given) == 1 else unit}"
            return location.path, word, f"has {counted}, {wrong} {context[bound]}", f"{right} {context[bound]}{about}"
        case kind if kind in EXPECTED:
            return (
                location.path,
                word,
                _kind_wrong(given, EXPECTED[kind]),
                f"{_form(given, location) or _kind_right(given, EXPECTED[kind]) or HOW_TO_WRITE[EXPECTED[kind]]}{about}",
            )
        case "value_error" | "assertion_error":
            return location.path, word, *_raised(str(context["error"]), given, f"correct it{about}")
        case kind if kind in BUILT_IN:
            return location.path, word, f"{word} is refused: {details['msg']}", f"correct it{about}"
        case _:
            return location.path, word, *_split(details["msg"], "")


def _kind(details: ErrorDetails, location: ErrorLocation) -> ProblemKind:
    """Return the kind of a problem that _describe describes."""
    match details["type"]:
        case "extra_forbidden":
            return ProblemKind.UNKNOWN_KEY
        case "string_pattern_mismatch":
            return ProblemKind.WRONG_FORM
        case kind if kind in EXPECTED:
            expected, given = EXPECTED[kind], details["input"]
            inside = ProblemKind.NOT_TEXT_OR_LIST if expected in (TEXT, LIST) else ProblemKind.OTHER
            specific = _form(given, location) or _kind_right(given, expected)
            return inside | (ProblemKind.OTHER if specific else ProblemKind.GENERAL_REMEDY)
        case _:
            return ProblemKind.OTHER


def _about(location: ErrorLocation) -> str:
    """Return the description of the nearest field, in brackets."""
    description = " ".join((location.field.description or "").split()) if location.field else ""
    return f" ({description.removesuffix('.')})" if description else ""


def _known(location: ErrorLocation) -> str:
    """Return the remedy for an unknown key: the known keys."""
    if space := WIDE_SPACE.search(str(location.path[-1])):
        return f"write a space in place of character U+{ord(space[0]):04X}"
    if near := _nearest(location):
        return f"leave it out: {near} is there already" if near in location.beside else f"did you mean {near}?"
    if owners := _owners(location):
        return f"it is a key of {' and of '.join(owners)}: indent it below {'it' if len(owners) == 1 else 'one of them'}"
    return f"the keys here are {', '.join(known_keys(location.model))}" if location.model else "leave it out"


def _owners(location: ErrorLocation) -> list[str]:
    """Return the keys beside an unknown one whose mapping has a key of its name."""
    fields = known_keys(location.model) if location.model else {}
    return [key for key, field in fields.items() if str(location.path[-1]) in _keys_below(field)]


def _keys_below(field: FieldInfo) -> Mapping[str, FieldInfo]:
    """Return the keys of the mapping that is a field's value."""
    kind = field.annotation
    return known_keys(kind) if isinstance(kind, type) and issubclass(kind, BaseModel) else {}


def _one_of(given: Any, choices: Sequence[str]) -> tuple[str, str]:
    """Return reason and remedy for a value that is none of the choices."""
    reason = f"{shown(given)} is not one of {', '.join(choices)}"
    if str(given) in choices:
        return _kind_wrong(given, TEXT), f'quote it: "{given}"'
    if isinstance(given, list) and len(given) == 1 and given[0] in choices:
        return reason, f"write {shown(given[0])} without brackets"
    words = str(given).split()
    if len(words) > 1 and all(word in choices for word in words):
        return reason, f"put commas between them: {', '.join(words)}"
    lower = {choice.lower(): choice for choice in choices}
    near = get_close_matches(str(given)[:LONGEST_KEY].lower(), lower, n=1)
    return reason, f"did you mean {lower[near[0]]}?" if near else "write one of them"


def _kind_wrong(given: object, expected: str) -> str:
    """Return the reason for a value of the wrong type."""
    kind = {str: TEXT, int: WHOLE, float: NUMBER}.get(type(given))
    return f"{shown(given)} is {kind}, not {expected}" if kind else f"{shown(given)} is not {expected}"


def _kind_right(given: object, expected: str) -> str:
    """Return the remedy for a value of the wrong type that almost has the right one; otherwise an empty string."""
    if expected == TEXT and isinstance(given, bool | int | float):
        return f'quote it: "{shown(given)}"'
    if expected == LIST and isinstance(given, dict):
        return "write [ ] in place of { }" if not any(given.values()) else "put a dash and a space before the first key of each entry"
    if expected == LIST and not isinstance(given, str | None):
        return f"write [{shown(given)}]"
    if expected == LIST and isinstance(given, str) and PLAIN_WORD.fullmatch(given):
        return f"write [{given}]"
    if expected in (WHOLE, NUMBER) and isinstance(given, str) and (found := NUMBER_AND_COMMENT.fullmatch(given)):
        return f"write {found[1]}, and begin a comment with a space and #"
    if expected == MAPPING and isinstance(given, list) and given and all(isinstance(item, dict) and len(item) == 1 for item in given):
        return "write { } in place of [ ], or leave the dashes out"
    if expected == TEXT and isinstance(given, dict) and not any(given.values()):
        return "write it without { }"
    if expected == MAPPING and isinstance(given, str) and COLON_WITHOUT_SPACE.fullmatch(given):
        return "put a space after the colon"
    return ""


def _form(given: object, location: ErrorLocation) -> str:
    """Return the remedy for the tag of a mapping in its place, or for a number that would be invalid as text; otherwise an empty string."""
    if given in location.tags:
        return f"write {{{location.tag_key}: {given}}}"
    if location.field is None or not isinstance(given, bool | int | float):
        return ""
    patterns = [getattr(item, "pattern", None) for item in location.field.metadata]
    wrong = [pattern for pattern in patterns if pattern in FORMS and not re.fullmatch(pattern, shown(given))]
    return f"write {FORMS[wrong[0]]}" if wrong else _refusal(location.field, shown(given))


def _refusal(field: FieldInfo, text: str) -> str:
    """Return the remedy with which a validator of a field refuses a text; an empty string if it accepts it."""
    expected: Any = Annotated[field.annotation, field]
    try:
        TypeAdapter(expected).validate_python(text, strict=True)
    except ValidationError as error:
        refused = [details["ctx"]["error"] for details in error.errors() if details["type"] == "value_error"]
        return _split(str(refused[0]), "")[1] if refused else ""
    return ""


def _raised(message: str, given: object, otherwise: str) -> tuple[str, str]:
    """Return reason and remedy of a ValueError's message, with the value as its subject unless it is a full sentence."""
    if isinstance(given, list | dict):
        return _split(message, otherwise)
    return _split(f"{shown(given)}{' ' if message[:1].islower() else ': '}{message}", otherwise)


def _split(message: str, otherwise: str) -> tuple[str, str]:
    """Split a validator's message into reason and remedy."""
    reason, _, remedy = message.rpartition("; ")
    return (reason, remedy) if reason else (message, otherwise)
