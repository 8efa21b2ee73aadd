"""Deliberate defects of the decision core, which the rules of the histories must detect."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from lifecycle.rotation.rotation import Rotation
from tests.support.rotation_world.history import run_history
from tests.support.rotation_world.scenario import Scenario

PACKAGE = "lifecycle.rotation"
UNCHANGED = frozenset(f"{PACKAGE}.{name}" for name in ("model", "policy", "calendar"))
"""Modules whose classes the histories share with the core."""


@dataclass(frozen=True)
class Defect:
    """A text of a module of the core, which occurs once, and what replaces it."""

    name: str
    module: str
    text: str
    replacement: str


class _Loader(SourceFileLoader):
    """Loads a module with a defect."""

    def __init__(self, name: str, path: str, defect: Defect) -> None:
        super().__init__(name, path)
        self._defect = defect

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the changed source; ValueError if the text does not occur once."""
        source = self.get_source(fullname) or ""
        count = source.count(self._defect.text)
        if count != 1:
            raise ValueError(f"{self.path}: the text of the defect {self._defect.name!r} occurs {count} times instead of once; adapt it")
        return compile(source.replace(self._defect.text, self._defect.replacement), self.path, "exec")


class _Finder:
    """Finds the module with a defect before others do."""

    def __init__(self, defect: Defect) -> None:
        self._name, self._defect = f"{PACKAGE}.{defect.module}", defect

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the module's spec with its own loader; None for other modules."""
        found = PathFinder.find_spec(name, path, target) if name == self._name else None
        if found is None or found.origin is None:
            return None
        found.loader = _Loader(name, found.origin, self._defect)
        return found


def core_with(defect: Defect) -> type[Rotation]:
    """Return the decision core with a defect; the modules of the correct one stay as they are."""
    correct = {name: module for name, module in sys.modules.items() if name.startswith(f"{PACKAGE}.") and name not in UNCHANGED}
    for name in correct:
        del sys.modules[name]
    finder = _Finder(defect)
    sys.meta_path.insert(0, finder)
    try:
        core: type[Rotation] = importlib.import_module(f"{PACKAGE}.rotation").Rotation
    finally:
        sys.meta_path.remove(finder)
        for name in [one for one in sys.modules if one.startswith(f"{PACKAGE}.") and one not in UNCHANGED]:
            del sys.modules[name]
        sys.modules.update(correct)
    return core


def detected_after(defect: Defect, histories: int) -> int | None:
    """Return the number of histories after which a rule is broken; None if each of them keeps every rule."""
    core = core_with(defect)
    for number in range(histories):
        try:
            run_history(Scenario.drawn(number), core)
        except (AssertionError, KeyError, RuntimeError, ValueError):
            return number + 1
    return None
