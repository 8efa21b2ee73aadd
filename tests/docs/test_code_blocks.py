"""Code in the documentation is valid: shell, YAML, JSON and Python parse, and gpufleet and make have each command."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner
from doc_pages import ROOT, Block, Page, pages

from gpufleet.cli import group

SHELL = ("console", "sh", "bash")
LANGUAGES = (*SHELL, "yaml", "json", "python", "hcl", "toml", "text")
TARGETS = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
COMMAND = re.compile(r"(?:^\s*|[(;&|]\s*)(?:[\w./]*/)?gpufleet +(?=[a-z-])(?P<words>[^|;&\n]*)")
POSSIBLY_EMPTY = re.compile(r"(?<![\"\w])\$\w+(?![\"\w])")
"""A variable without quotes, which adds no word when it is empty."""
PLACEHOLDER = re.compile(r"<([\w -]+)>")


def errors(page: Page) -> list[str]:
    """Return one line per error in the code of a page."""
    found = [f"{page.name}:{block.line}: {reason}" for block in page.blocks for reason in block_errors(block)]
    for code in page.inline_code():
        reasons = [*gpufleet_errors(code.text, inline=True), *make_errors(code.text)]
        found += [f"{page.name}:{code.line}: {reason}" for reason in reasons]
    return found


def block_errors(block: Block) -> Iterator[str]:
    """Yield what is wrong with a code block."""
    if block.language not in LANGUAGES:
        yield f"the language '{block.language}' is none of {', '.join(LANGUAGES)}"
    elif block.language in SHELL:
        shell = commands(block)
        done = subprocess.run(["bash", "-n"], input=shell, capture_output=True, text=True, check=False)
        yield from done.stderr.splitlines()
        for line in shell.replace("\\\n", " ").splitlines():
            yield from gpufleet_errors(line, inline=False)
            yield from make_errors(line)
    else:
        try:
            match block.language:
                case "yaml":
                    list(yaml.safe_load_all(block.text))
                case "json":
                    json.loads(block.text)
                case "python":
                    ast.parse(block.text)
        except (yaml.YAMLError, ValueError, SyntaxError) as error:
            yield str(error)


def commands(block: Block) -> str:
    """Return the shell of a block: a console with prompts shows output too. Placeholders such as <group> become words."""
    lines = block.text.splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return PLACEHOLDER.sub(r"\1", "\n".join(lines)) + "\n"


def gpufleet_errors(line: str, *, inline: bool) -> Iterator[str]:
    """Yield what gpufleet's own parser refuses in the gpufleet commands of a shell line. Prose may omit arguments."""
    if inline and not re.match(r"([\w./]*/)?gpufleet +[a-z-]", line):
        return
    for found in COMMAND.finditer(line):
        try:
            arguments = found["words"].partition(")")[0].partition(" > ")[0]
            words = shlex.split(POSSIBLY_EMPTY.sub("", arguments), comments=True)
        except ValueError as error:
            yield f"{found[0].strip()}: {error}"
            continue
        try:
            _parse(group, words, optional=inline)
        except click.UsageError as error:
            yield f"gpufleet {' '.join(words)}: {error.format_message()}"


def _parse(command: click.Command, words: list[str], *, optional: bool) -> None:
    """Raise a UsageError if a command has no such subcommand, option or number of arguments."""
    context = click.Context(command)
    if isinstance(command, click.Group):
        if not words or words[0].startswith("-"):
            command.make_parser(context).parse_args(words)
            return
        child = command.get_command(context, words[0])
        if child is None:
            raise click.UsageError(f"there is no command '{words[0]}'")
        _parse(child, words[1:], optional=optional)
        return
    values, rest, _ = command.make_parser(context).parse_args(list(words))
    if rest:
        raise click.UsageError(f"too many arguments: {' '.join(rest)}")
    if optional or "help" in values:
        return
    for parameter in command.params:
        if parameter.required and not isinstance(values.get(str(parameter.name)), str | bool | list):
            raise click.UsageError(f"{parameter.human_readable_name} is missing")


def make_errors(line: str) -> Iterator[str]:
    """Yield targets that the Makefile does not have."""
    found = re.match(r"(?:\w+=\S+ )*make +(?P<target>[a-z][a-z-]*)\b", line.strip())
    if found and found["target"] not in TARGETS.findall((ROOT / "Makefile").read_text()):
        yield f"make has no target '{found['target']}'"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_code_of_a_page_is_valid(page: Page) -> None:
    assert errors(page) == []


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("```sh\nif true; then\n```", "syntax error"),
        ("```console\ngpufleet chekc dev\n```", "there is no command 'chekc'"),
        ("```console\nx=$(.venv/bin/gpufleet up dev --nonsense)\n```", "No such option"),
        ("```console\ngpufleet check\n```", "REGION is missing"),
        ("```console\ngpufleet check dev dev\n```", "too many arguments"),
        ("Run `gpufleet destory`.", "there is no command 'destory'"),
        ("Run `make everything`.", "make has no target 'everything'"),
        ("```yaml\na: [1\n```", "while parsing"),
        ("```python\nx =\n```", "invalid syntax"),
        ("```json\n{a: 1}\n```", "Expecting property name"),
        ("```\nx\n```", "the language '' is none of"),
    ],
)
def test_invalid_code_is_reported(code: str, error: str) -> None:
    (found, *_) = errors(Page(Path("page.md"), code))
    assert error in found


@pytest.mark.parametrize("name", ["README.md", "docs/everyday-commands.md"])
def test_the_example_of_an_invalid_region_file_is_printed(name: str, tmp_path: Path) -> None:
    texts = [block.text.strip() for block in Page(ROOT / name).blocks if block.language == "text"]
    (example,) = [text for text in texts if text.startswith("stacks/regions/")]
    draft = tmp_path / "southcentralus.yaml"
    draft.write_text((ROOT / "stacks/regions/southcentralus.yaml").read_text().replace("nodes: 7500", "nodes: 7501", 1))
    done = CliRunner().invoke(group, ["check", str(draft)])
    assert str(draft) + example.removeprefix("stacks/regions/southcentralus.yaml") in str(done.exception) + done.output
