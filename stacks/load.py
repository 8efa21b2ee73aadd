"""Reader of region files and the image catalog; the only reader of files that people write."""

from __future__ import annotations

import json
import pathlib
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from components.plan.invalid_value import InvalidValue
from components.plan.model import RegionPlan
from components.plan.region import plan_region
from components.plan.validation import validate_region
from components.spec.images import ImageCatalog, ImageDefinition, Published
from components.spec.region import Region
from stacks.file_problems import InvalidFileError, Path, ProblemKind, invalid_file, nearest_position, path_text, problem, shown
from stacks.model_problems import merge_problems, model_problems
from stacks.strict_yaml import MAX_BYTES, read

M = TypeVar("M", bound=BaseModel)
ROOT = pathlib.Path(__file__).resolve().parents[1]
REGIONS = ROOT / "stacks" / "regions"
IMAGES = ROOT / "node-images"
PUBLISHED = "versions.yaml"
ONLY_YAML = "only files that end in .yaml are read"


def load_plan(region: str) -> RegionPlan:
    """Return the plan of a region, given by name under stacks/regions or by a path; raise InvalidFileError with all problems."""
    catalog = load_catalog()
    return plan_region(load_region(region, catalog), catalog)


@dataclass(frozen=True)
class Siblings:
    """Plans of the other regions, and a line for each file that is left out because of its problems."""

    plans: tuple[RegionPlan, ...]
    left_out: tuple[str, ...]


def load_siblings(region: str) -> Siblings:
    """Return all other regions; raise InvalidFileError only if the region's name is unknown or the catalog is invalid.

    A file with problems is left out; its own check reports them.
    """
    catalog, plans, left_out = load_catalog(), [], []
    for path in _siblings(region_path(region)).values():
        try:
            plans.append(plan_region(_read_region(path, catalog, dict), catalog))
        except InvalidFileError as error:
            file, count = _shown(path), len(error.problems)
            compared = "" if _address_space(path) else ", nor is its address space compared"
            left_out.append(
                f"{file} is not counted{compared}: it has {count} problem{'s' * (count != 1)}, which gpufleet check {file} lists"
            )
    folders = (REGIONS, region_path(region).resolve().parent)
    others = sorted({path for folder in folders for path in folder.glob("*.[yY][mM][lL]")})
    left_out += [
        f"{_shown(path)} is not counted: {ONLY_YAML}; {_rename(path)}" for path in others if path.parent == REGIONS or _is_region(path)
    ]
    return Siblings(tuple(plans), tuple(left_out))


def place(region: str, name: str, path: Path) -> str:
    """Return file and line of a path in the file of a region, or in that of one of its siblings.

    region is the name or path by which the region was loaded; name is that of the region or of the sibling.
    """
    own = region_path(region)
    file = own if name == own.stem else _siblings(own)[name]
    position = nearest_position(path, read(_content(file), str(file)).positions)
    return f"{_shown(file)}:{position.line}" if position else str(_shown(file))


def load_region(region: str, catalog: ImageCatalog) -> Region:
    """Return a region given by name or path, validated with catalog and other regions; raise InvalidFileError with all problems."""
    path = region_path(region)
    return _read_region(path, catalog, lambda: _address_spaces(path))


def _read_region(path: pathlib.Path, catalog: ImageCatalog, others: Callable[[], Mapping[str, str]]) -> Region:
    """Read a region file; others returns the address spaces of other regions by name."""
    return read_model(_shown(path), Region, lambda document: validate_region(document, path.stem, catalog, others()))


def load_catalog() -> ImageCatalog:
    """Return the image definitions and published versions of node-images/; raise InvalidFileError for the first invalid file."""
    paths = sorted(path for path in IMAGES.glob("*.yaml") if path.name != PUBLISHED)
    definitions = [read_model(_shown(path), ImageDefinition) for path in paths]
    published = read_model(_shown(IMAGES / PUBLISHED), Published)
    by_name = {definition.name: definition for definition in definitions}
    for path, definition in zip(paths, definitions, strict=True):
        if definition.name != path.stem:
            raise _invalid(path, ("name",), definition.name, f"differs from the file's name, {path.name}", f"write name: {path.stem}")
    for name in published.images:
        if name not in by_name:
            raise _invalid(IMAGES / PUBLISHED, ("images", name), name, "has no definition in node-images/", f"add node-images/{name}.yaml")
    return ImageCatalog(definitions=by_name, published=published.images)


def region_names() -> tuple[str, ...]:
    """Return the names of the regions under stacks/regions, sorted."""
    return tuple(sorted(path.stem for path in REGIONS.glob("*.yaml")))


def region_path(region: str) -> pathlib.Path:
    """Return the path of a region given by name or by path; raise InvalidFileError, with the nearest name, if it is unknown."""
    if "/" in region or region.lower().endswith((".yaml", ".yml")):
        path = pathlib.Path(region)
        if path.suffix.lower() == ".yml" and path.is_file():
            raise _unreadable(_shown(path), f"ends in {path.suffix}, and {ONLY_YAML}", _rename(path))
        return path
    if region in region_names():
        return REGIONS / f"{region}.yaml"
    if (other := REGIONS / f"{region}.yml").exists():
        raise _unreadable(_shown(other), f"ends in .yml, and {ONLY_YAML}", _rename(other))
    near = get_close_matches(region, region_names(), n=1)
    remedy = f"did you mean {near[0]}?" if near else f"known: {', '.join(region_names())}; or give a path to a file"
    raise invalid_file([problem("stacks/regions", (), None, region, f"{shown(region)} is no region", remedy)])


def _rename(path: pathlib.Path) -> str:
    """Return the remedy for a region file whose name does not end in .yaml."""
    right = path.with_suffix(".yaml")
    return f"{right.name} is there too, so delete one of the two" if right.exists() else f"rename it to {right.name}"


def _siblings(path: pathlib.Path) -> dict[str, pathlib.Path]:
    """Return the files of the other regions by name: those under stacks/regions, and region files in the folder of a draft.

    A draft replaces the region of its name, so the file of that name under stacks/regions is not included.
    """
    beside = (other for other in path.resolve().parent.glob("*.yaml") if other.parent == REGIONS or _is_region(other))
    found = {other.stem: other for other in (*REGIONS.glob("*.yaml"), *beside)}
    return {name: found[name] for name in sorted(found) if name != path.stem}


def _is_region(path: pathlib.Path) -> bool:
    """Return True if a file in the folder of a draft looks like a region file, valid or not."""
    try:
        return b"address_space" in _content(path)
    except InvalidFileError:
        return False


def _address_spaces(path: pathlib.Path) -> dict[str, str]:
    """Return the address space of every other region that has one."""
    spaces = {name: _address_space(other) for name, other in _siblings(path).items()}
    return {name: space for name, space in spaces.items() if space}


def _address_space(path: pathlib.Path) -> str:
    """Return the address space in a region file, valid or not; empty if the file cannot be read or has none."""
    try:
        data = read(_content(path), str(path)).data
    except InvalidFileError:
        return ""
    space = data.get("address_space") if isinstance(data, dict) else None
    return space if isinstance(space, str) else ""


def short_path(path: pathlib.Path) -> pathlib.Path:
    """Return a path relative to the working directory if it is below it, else absolute."""
    try:
        resolved, folder = path.resolve(), pathlib.Path.cwd()
        return resolved.relative_to(folder) if resolved.is_relative_to(folder) else resolved
    except (OSError, RuntimeError):
        # Up to Python 3.12, a loop of links raises a RuntimeError; a deleted working directory raises an OSError.
        return path


def _shown(path: pathlib.Path) -> pathlib.Path:
    """Return the path relative to the working directory if it is below it, else as it was given."""
    short = short_path(path)
    return path if short.is_absolute() else short


def read_model(path: pathlib.Path, model: type[M], validate: Callable[[object], Iterable[InvalidValue]] = lambda _: ()) -> M:
    """Read a YAML file as a model; raise InvalidFileError with all problems of the file.

    Values have the types of the model's JSON schema: a quoted number is text, and text is no number. validate returns further invalid
    values of the raw document, so that one kind of problem hides no other.
    """
    file = str(path)
    document = read(_content(path), file)
    try:
        value = model.model_validate_json(json.dumps(document.data), strict=True)
        problems = merge_problems(document, [])
    except ValidationError as error:
        problems = merge_problems(document, model_problems(error, model, document.data, document.positions, file))
    reported = {one.path for one in problems if ProblemKind.WRONG_FORM not in one.kind}
    for item in validate(document.data):
        path_in_text = path_text(item.path)
        if item.replaces_model_error or path_in_text not in reported:
            value_text, position = shown(item.value), nearest_position(item.path, document.positions)
            # A validation knows the values that exist, so its remedy is better than that for the form.
            problems = [
                one for one in problems if one.path != path_in_text or not (item.replaces_model_error or ProblemKind.WRONG_FORM in one.kind)
            ]
            problems.append(problem(file, item.path, position, value_text, f"{value_text} {item.reason}", item.remedy))
    if problems:
        raise invalid_file(problems)
    return value


def _content(path: pathlib.Path) -> bytes:
    """Return the content of a regular file, at most one byte more than MAX_BYTES."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise _unreadable(path, "is a directory", "name a file in it")
        if not stat.S_ISREG(mode):
            raise _unreadable(path, "is no regular file", "name a file with text in it")
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        named = path.parent == pathlib.Path() and path.stem in region_names()
        raise _unreadable(path, "there is no such file", f"write {path.stem} alone" if named else "check the name") from None
    except PermissionError:
        raise _unreadable(path, "may not be read", "request permission to read it") from None
    except (OSError, ValueError) as error:
        # A name with a NUL character raises a ValueError.
        reason = error.strerror if isinstance(error, OSError) else None
        raise _unreadable(path, f"cannot be read: {reason or error}", "check the name and the disk") from None


def _unreadable(path: pathlib.Path, reason: str, remedy: str) -> InvalidFileError:
    return invalid_file([problem(str(path), (), None, None, reason, remedy)])


def _invalid(path: pathlib.Path, path_in_file: Path, value: str, reason: str, remedy: str) -> InvalidFileError:
    return invalid_file([problem(str(_shown(path)), path_in_file, None, value, reason, remedy)])
