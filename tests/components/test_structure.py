"""All components have the same structure, checked in their source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import components

FILES = sorted(path for path in Path(components.__file__).parent.glob("*.py") if path.name != "__init__.py")


@dataclass(frozen=True)
class Component:
    """One ComponentResource class and where it stands."""

    path: Path
    node: ast.ClassDef

    def __str__(self) -> str:
        return f"{self.path.name}:{self.node.name}"

    @property
    def init(self) -> ast.FunctionDef:
        return next(item for item in self.node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__")


def _components() -> Iterator[Component]:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "pulumi.ComponentResource" for base in node.bases):
                yield Component(path, node)


COMPONENTS = list(_components())
EVERY_COMPONENT = pytest.mark.parametrize("component", COMPONENTS, ids=str)
EVERY_FILE = pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)


def _calls(node: ast.AST, name: str) -> list[ast.Call]:
    """Calls below a node of a function or method with a name."""
    return [item for item in ast.walk(node) if isinstance(item, ast.Call) and ast.unparse(item.func).rpartition(".")[2] == name]


def test_there_are_components() -> None:
    assert len(COMPONENTS) > 10


@EVERY_COMPONENT
def test_a_component_registers_its_outputs_last_and_once(component: Component) -> None:
    assert ast.unparse(component.init.body[-1]).startswith("self.register_outputs(")
    assert len(_calls(component.node, "register_outputs")) == 1


@EVERY_COMPONENT
def test_a_component_is_registered_under_its_module_and_class(component: Component) -> None:
    call = next(call for call in _calls(component.init, "__init__") if ast.unparse(call.func) == "super().__init__")
    assert ast.unparse(call.args[0]) == f"'gpufleet:{component.path.stem}:{component.node.name}'"


@EVERY_COMPONENT
def test_a_component_takes_a_name_its_args_and_options(component: Component) -> None:
    arguments = component.init.args
    assert [argument.arg for argument in arguments.args] == ["self", "name", "args", "opts"]
    assert arguments.args[2].annotation is not None
    assert ast.unparse(arguments.args[2].annotation) == f"{component.node.name}Args"


@EVERY_COMPONENT
def test_options_of_a_child_name_its_parent(component: Component) -> None:
    orphans = [
        call.lineno for call in _calls(component.node, "ResourceOptions") if not any(keyword.arg == "parent" for keyword in call.keywords)
    ]
    assert not orphans, f"lines {orphans} make options without a parent"


@EVERY_FILE
def test_a_comment_says_why_one_resource_waits_for_another(path: Path) -> None:
    text = path.read_text()
    lines = text.splitlines()
    silent = [
        lineno
        for lineno, places in _waits(ast.parse(text))
        if not any(lines[place - 2].lstrip().startswith("#") for place in places if place > 1)
    ]
    assert not silent, f"{path.name}: lines {silent} wait without a word on why"


def _waits(tree: ast.Module) -> Iterator[tuple[int, list[int]]]:
    """Line of every depends_on, and the lines above which its reason may stand: its own, its statement's, or its value's assignment."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for statement in (node for node in ast.walk(function) if isinstance(node, ast.stmt) and not hasattr(node, "body")):
            for call in _calls(statement, "ResourceOptions"):
                for keyword in (item for item in call.keywords if item.arg == "depends_on"):
                    assigned = [
                        node.lineno for node in ast.walk(function) if isinstance(node, ast.Assign) and _assigns(node, keyword.value)
                    ]
                    yield keyword.value.lineno, [keyword.value.lineno, call.lineno, statement.lineno, *assigned]


def _assigns(node: ast.Assign, value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and any(isinstance(target, ast.Name) and target.id == value.id for target in node.targets)


@EVERY_FILE
def test_nothing_is_created_inside_apply(path: Path) -> None:
    tree = ast.parse(path.read_text())
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for call in _calls(tree, "apply"):
        for argument in call.args:
            body = functions.get(argument.id) if isinstance(argument, ast.Name) else argument
            made = [ast.unparse(item.func) for item in ast.walk(body or argument) if isinstance(item, ast.Call) and _is_class(item.func)]
            assert not made, f"{path.name}:{call.lineno} makes {made} inside apply"


def _is_class(called: ast.expr) -> bool:
    return ast.unparse(called).rpartition(".")[2][:1].isupper()
