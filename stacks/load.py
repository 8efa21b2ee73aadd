"""Decides how a file becomes a typed value; the only reader of files that people write."""

from __future__ import annotations

import json
import pathlib
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from components.plan.invalid_value import InvalidValue
from components.plan.model import RegionPlan
from components.plan.region import plan_region
from components.plan.validation import validate_region
from components.spec.images import ImageCatalog, ImageDefinition, Published
from components.spec.region import Region
from stacks.file_problems import InvalidFileError, invalid_file, nearest_position, path_text, problem, shown
from stacks.file_problems import Path as Place
from stacks.model_problems import model_problems
from stacks.strict_yaml import MAX_BYTES, read

M = TypeVar("M", bound=BaseModel)
ROOT = pathlib.Path(__file__).resolve().parents[1]
REGIONS = ROOT / "stacks" / "regions"
IMAGES = ROOT / "node-images"
PUBLISHED = "versions.yaml"


def load_plan(region: str) -> RegionPlan:
    """Plan of a region, given by its name under stacks/regions or by a path to a file; FileRefused with every problem."""
    catalog = load_catalog()
    return plan_region(load_region(region, catalog), catalog)


@dataclass(frozen=True)
class Siblings:
    """Plans of the other regions, and a line for each file that has problems and is therefore not among them."""

    plans: tuple[RegionPlan, ...]
    left_out: tuple[str, ...]


def load_siblings(region: str) -> Siblings:
    """Every other region that stands beside a region given by name or path; FileRefused only where the region or the catalog has no name.

    A file with problems is left out, not refused: its own check tells them.
    """
    catalog, plans, left_out = load_catalog(), [], []
    for path in _siblings(region_path(region)).values():
        try:
            plans.append(plan_region(_alone(path, catalog), catalog))
        except InvalidFileError as error:
            file, count = _shown(path), len(error.problems)
            compared = "" if _address_space(path) else ", nor is its address space compared"
            left_out.append(
                f"{file} is not counted{compared}: it has {count} problem{'s' * (count != 1)}, which gpufleet check {file} tells"
            )
    return Siblings(tuple(plans), tuple(left_out))


def load_region(region: str, catalog: ImageCatalog) -> Region:
    """Region file by name or path, with every problem of its own and every contradiction with the catalog and the other regions."""
    path = region_path(region)

    def judge(document: object) -> tuple[InvalidValue, ...]:
        return validate_region(document, path.stem, catalog, _address_spaces(path))

    return read_model(_shown(path), Region, judge)


def _alone(path: pathlib.Path, catalog: ImageCatalog) -> Region:
    """Region file, judged without the other regions."""
    return read_model(_shown(path), Region, lambda document: validate_region(document, path.stem, catalog, {}))


def load_catalog() -> ImageCatalog:
    """Image definitions and published versions of node-images/; FileRefused with every problem of the first file that has any."""
    paths = sorted(path for path in IMAGES.glob("*.yaml") if path.name != PUBLISHED)
    definitions = [read_model(_shown(path), ImageDefinition) for path in paths]
    published = read_model(_shown(IMAGES / PUBLISHED), Published)
    by_name = {definition.name: definition for definition in definitions}
    for path, definition in zip(paths, definitions, strict=True):
        if definition.name != path.stem:
            raise invalid_file(
                [
                    problem(
                        str(_shown(path)),
                        ("name",),
                        None,
                        definition.name,
                        f"differs from the file's name, {path.name}",
                        f"write name: {path.stem}",
                    )
                ]
            )
    for name in published.images:
        if name not in by_name:
            place: Place = ("images", name)
            raise invalid_file(
                [
                    problem(
                        str(_shown(IMAGES / PUBLISHED)),
                        place,
                        None,
                        name,
                        "has no definition in node-images/",
                        f"add node-images/{name}.yaml",
                    )
                ]
            )
    return ImageCatalog(definitions=by_name, published=published.images)


def region_names() -> tuple[str, ...]:
    """Names of the regions under stacks/regions, sorted."""
    return tuple(sorted(path.stem for path in REGIONS.glob("*.yaml")))


def region_path(region: str) -> pathlib.Path:
    """Path of a region given by name or by path; FileRefused, naming the nearest known region, where the name is unknown."""
    if "/" in region or region.endswith((".yaml", ".yml")):
        return pathlib.Path(region)
    if region in region_names():
        return REGIONS / f"{region}.yaml"
    near = get_close_matches(region, region_names(), n=1)
    remedy = f"did you mean {near[0]}?" if near else f"known: {', '.join(region_names())}; or give a path to a file"
    raise invalid_file([problem("stacks/regions", (), None, region, f"{shown(region)} is no region", remedy)])


def _siblings(path: pathlib.Path) -> dict[str, pathlib.Path]:
    """Files of the other regions by name: those under stacks/regions, and the region files beside a draft.

    A draft stands for the region of its name, so the shipped file of that name is none of them.
    """
    beside = (other for other in path.resolve().parent.glob("*.yaml") if other.parent == REGIONS or _is_region(other))
    found = {other.stem: other for other in (*REGIONS.glob("*.yaml"), *beside)}
    return {name: found[name] for name in sorted(found) if name != path.stem}


def _is_region(path: pathlib.Path) -> bool:
    """Whether a file beside a draft is meant for a region, however faulty: anything may lie there."""
    try:
        return b"address_space" in _content(path)
    except InvalidFileError:
        return False


def _raw(path: pathlib.Path) -> dict[str, Any]:
    """The mapping that a file holds, however faulty; empty where it holds none or cannot be read."""
    try:
        data = read(_content(path), str(path)).data
    except InvalidFileError:
        return {}
    return data if isinstance(data, dict) else {}


def _address_spaces(path: pathlib.Path) -> dict[str, str]:
    """Address space of every other region that has one; what load_siblings says of the others."""
    spaces = {name: _address_space(other) for name, other in _siblings(path).items()}
    return {name: space for name, space in spaces.items() if space}


def _address_space(path: pathlib.Path) -> str:
    """What a file, however faulty, gives as its address space; empty where it cannot be read or gives none."""
    space = _raw(path).get("address_space")
    return space if isinstance(space, str) else ""


def _shown(path: pathlib.Path) -> pathlib.Path:
    """The path as a person would write it: from the working directory where it lies below it."""
    try:
        return path.resolve().relative_to(pathlib.Path.cwd())
    except (ValueError, OSError, RuntimeError):
        # Up to Python 3.12 a loop of links is a RuntimeError.
        return path


def read_model(path: pathlib.Path, model: type[M], judge: Callable[[object], Iterable[InvalidValue]] = lambda _: ()) -> M:
    """Read a YAML file as a model; FileRefused, with every problem in the file, where it is none.

    Values are taken as the JSON schema of the model takes them: a quoted number is text, and text is no number. judge names what the
    document contradicts besides, and sees it raw, so that one kind of problem hides no other.
    """
    file = str(path)
    document = read(_content(path), file)
    problems = list(document.problems)
    try:
        value = model.model_validate_json(json.dumps(document.data), strict=True)
    except ValidationError as error:
        for place, found in model_problems(error, model, document.data, document.positions, file):
            # A word that may mean two things is told as that alone; the model has seen it as text.
            if not any(place[:length] in document.refused for length in range(len(place) + 1)):
                problems.append(found)
    told = {one.path for one in problems}
    for item in judge(document.data):
        if path_text(item.path) in told:
            continue
        problems.append(
            problem(
                file,
                item.path,
                nearest_position(item.path, document.positions),
                shown(item.value),
                f"{shown(item.value)} {item.reason}",
                item.remedy,
            )
        )
    if problems:
        raise invalid_file(problems)
    return value


def _content(path: pathlib.Path) -> bytes:
    """Read a regular file, at most one byte more than a YAML file may have."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise _unreadable(path, "is a directory", "name a file in it")
        if not stat.S_ISREG(mode):
            raise _unreadable(path, "is no regular file", "name a file with text in it")
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _unreadable(path, "there is no such file", "check the name") from None
    except PermissionError:
        raise _unreadable(path, "may not be read", "ask for permission to read it") from None
    except (OSError, ValueError) as error:
        # A name with a NUL in it is a ValueError.
        reason = error.strerror if isinstance(error, OSError) else None
        raise _unreadable(path, f"cannot be read: {reason or error}", "check the name and the disk") from None


def _unreadable(path: pathlib.Path, reason: str, remedy: str) -> InvalidFileError:
    return invalid_file([problem(str(path), (), None, None, reason, remedy)])
