"""Parser of systemd unit files and drop-ins, for the syntax that the fleet's units use; other syntax is refused."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from components.errors import GpufleetError
from rehearsal.local_cluster.systemd.unit_directives import SUPPORTED, WITHOUT_MEANING

PREFIXES = "-+@!:"
SPECIFIER = re.compile(r"%(.?)")
VARIABLE = re.compile(r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
WHOLE_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|min|sec|m|s|h|d)?")
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, None: 1}
TYPES = ("simple", "exec", "notify", "oneshot")
RESTARTS = ("no", "always", "on-failure")


class UnitFileError(GpufleetError, ValueError):
    """A unit file that is not read: where is the unit, line the line, why the reason."""

    def __init__(self, where: str, line: str, why: str) -> None:
        self.where, self.line, self.why = where, line, why
        self.remedy = "write it as components/boot/unit.py does, or teach rehearsal/local_cluster/systemd/unit_file.py"
        super().__init__(f"{where}: {line[:120]!r}: {why}; {self.remedy}")


@dataclass(frozen=True)
class Command:
    """One command line: argv with unexpanded variables, and its prefixes."""

    argv: tuple[str, ...]
    prefixes: str = ""

    @property
    def may_fail(self) -> bool:
        return "-" in self.prefixes


@dataclass(frozen=True)
class Unit:
    """One unit: values by Section.Directive in file order; an empty assignment clears earlier values."""

    name: str
    settings: Mapping[str, tuple[str, ...]]
    unknown: tuple[str, ...] = ()
    """Directives of neither table."""
    without_meaning: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    environment_files: tuple[tuple[str, bool], ...] = ()
    """Path of each, and True if it may be missing."""
    start_pre: tuple[Command, ...] = ()
    start: tuple[Command, ...] = ()
    start_post: tuple[Command, ...] = ()

    def last(self, directive: str, default: str = "") -> str:
        """Return the last value of a directive, which is the effective one."""
        return self.settings.get(directive, (default,))[-1]

    def named(self, directive: str) -> tuple[str, ...]:
        """Return the words of all lines of a directive, for example unit names."""
        return tuple(word for line in self.settings.get(directive, ()) for word in line.split())

    @property
    def type(self) -> str:
        return self.last("Service.Type", "simple")

    @property
    def restart(self) -> str:
        return self.last("Service.Restart", "no")

    @property
    def restart_seconds(self) -> float:
        """Return the seconds before a restart; systemd's default is 0.1."""
        return self._seconds("Service.RestartSec", "100ms")

    @property
    def stop_seconds(self) -> float:
        """Return the seconds from SIGTERM to SIGKILL; systemd's default is 90."""
        return self._seconds("Service.TimeoutStopSec", "90s")

    def _seconds(self, directive: str, default: str) -> float:
        text = self.last(directive, default)
        return float("inf") if text == "infinity" else seconds(self.name, text)


def seconds(where: str, text: str) -> float:
    """Return the seconds of a time span such as 5, 250ms or 1h 30min; raise UnitFileError."""
    spans = list(SPAN.finditer(text))
    if not spans or "".join(one[0] for one in spans).replace(" ", "") != text.replace(" ", ""):
        raise UnitFileError(where, text, "this is no time span")
    return sum(float(one[1]) * SECONDS[one[2]] for one in spans)


def read_unit(name: str, text: str, drop_ins: Iterable[tuple[str, str]] = ()) -> Unit:
    """Return a unit with its drop-ins, pairs of path and text, in the order of their names; raise UnitFileError."""
    settings: dict[str, list[str]] = {}
    for where, part in ((name, text), *sorted(drop_ins)):
        for directive, value in _assignments(where, part):
            values = settings.setdefault(directive, [])
            if value:
                values.append(value)
            else:
                values.clear()
    lines = {directive: tuple(values) for directive, values in settings.items()}
    found = Unit(
        name=name,
        settings=lines,
        unknown=tuple(one for one in lines if one not in SUPPORTED and one not in WITHOUT_MEANING),
        without_meaning=tuple(one for one in lines if one in WITHOUT_MEANING),
        environment=dict(_pair(name, word) for line in lines.get("Service.Environment", ()) for word in _words(name, line)),
        environment_files=tuple(
            (_literal(name, line.removeprefix("-")), line.startswith("-")) for line in lines.get("Service.EnvironmentFile", ())
        ),
        start_pre=_commands(name, lines.get("Service.ExecStartPre", ())),
        start=_commands(name, lines.get("Service.ExecStart", ())),
        start_post=_commands(name, lines.get("Service.ExecStartPost", ())),
    )
    _check(found)
    return found


def _assignments(where: str, text: str) -> Iterable[tuple[str, str]]:
    """Yield Section.Directive and value of each assignment; a backslash continues a line, also across comments."""
    section, continued = "", ""
    for raw in text.split("\n"):
        line = raw.strip()
        if line.startswith(("#", ";")) or (not line and not continued):
            continue
        whole = f"{continued} {line}".strip() if continued else line
        if whole.endswith("\\"):
            continued = whole[:-1].rstrip()
            continue
        continued = ""
        if whole.startswith("[") and whole.endswith("]"):
            section = whole[1:-1]
            continue
        directive, equals, value = whole.partition("=")
        if not section or not equals or not directive.strip().isidentifier():
            raise UnitFileError(where, whole, "this is no assignment in a section")
        yield f"{section}.{directive.strip()}", value.strip()
    if continued:
        raise UnitFileError(where, continued, "the file ends where a line is to be continued")


def _commands(where: str, lines: Iterable[str]) -> tuple[Command, ...]:
    commands = []
    for line in lines:
        bare = line.lstrip(PREFIXES)
        prefixes = line[: len(line) - len(bare)]
        argv = tuple(_words(where, bare))
        if not argv or not argv[0].startswith("/"):
            raise UnitFileError(where, line, "the program is not given by its absolute path")
        # After @ the second word is argv[0] of the program, not an argument.
        commands.append(Command(argv[:1] + argv[2:] if "@" in prefixes else argv, prefixes))
    return tuple(commands)


def _words(where: str, line: str) -> list[str]:
    """Return the words of a line without quotes; refuse a backslash, which systemd reads as a C escape."""
    if "\\" in line:
        raise UnitFileError(where, line, "a backslash inside a line is an escape, and escapes are not supported here")
    try:
        return [_literal(where, word) for word in shlex.split(line)]
    except ValueError as error:
        raise UnitFileError(where, line, str(error)) from None


def _literal(where: str, word: str) -> str:
    """Return a word with %% as %; refuse other specifiers, whose values only systemd has."""
    for found in SPECIFIER.finditer(word):
        if found[1] != "%":
            raise UnitFileError(where, word, f"specifier {found[0]!r} is not supported here; a percent sign is written %%")
    return word.replace("%%", "%")


def _pair(where: str, word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not name.isidentifier():
        raise UnitFileError(where, word, "Environment needs NAME=VALUE")
    return name, value


def _check(unit: Unit) -> None:
    """Refuse a service whose directives have unsupported values."""
    if not unit.name.endswith(".service"):
        return
    if not unit.start:
        raise UnitFileError(unit.name, "[Service]", "it has no ExecStart")
    if unit.type not in TYPES or unit.restart not in RESTARTS:
        raise UnitFileError(
            unit.name, f"Type={unit.type} Restart={unit.restart}", f"supported are {', '.join(TYPES)}; {', '.join(RESTARTS)}"
        )
    if len(unit.start) > 1 and unit.type != "oneshot":
        raise UnitFileError(unit.name, f"Type={unit.type}", "only a oneshot may have more than one ExecStart")
    if unit.settings.get("Unit.StartLimitIntervalSec", ("0",)) != ("0",):
        raise UnitFileError(unit.name, f"StartLimitIntervalSec={unit.last('Unit.StartLimitIntervalSec')}", "only 0 is supported")


def expanded(command: Command, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return argv with ${NAME} expanded within a word, $NAME as whole word expanded to several words, and $$ as $; unset ones are empty.

    https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html#Command%20lines
    """
    if ":" in command.prefixes:
        return command.argv
    argv = [command.argv[0]]
    for word in command.argv[1:]:
        whole = WHOLE_VARIABLE.fullmatch(word)
        argv += environment.get(whole[1], "").split() if whole else [VARIABLE.sub(lambda one: _value(one, environment), word)]
    return tuple(argv)


def _value(found: re.Match[str], environment: Mapping[str, str]) -> str:
    """Return the value of a variable inside a word; $NAME without braces stays, because it is expanded only as a whole word."""
    if found[0] == "$$":
        return "$"
    return environment.get(found[1], "") if found[1] else found[0]


def variables(command: Command) -> frozenset[str]:
    """Return the names of the variables in a command line."""
    if ":" in command.prefixes:
        return frozenset()
    whole = (WHOLE_VARIABLE.fullmatch(word) for word in command.argv[1:])
    inside = (one[1] for word in command.argv[1:] for one in VARIABLE.finditer(word))
    return frozenset({one[1] for one in whole if one} | {one for one in inside if one})
