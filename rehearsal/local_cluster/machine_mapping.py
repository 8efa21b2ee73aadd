"""Decides where a machine's paths and addresses are when it runs among others on this one: a folder, and ports of loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from rehearsal.local_cluster.path_fields import ADDRESSES, ENVIRONMENT, FILES, FLAGS, IDENTIFIER, PATH

LOOPBACK = "127.0.0.1"
OWN = (LOOPBACK, "localhost")
MACHINE_PATHS = ("/etc/", "/var/", "/run/", "/usr/local/", "/tmp/")  # noqa: S108 (of the machine, not of this one)
MANIFEST = "/etc/gpufleet/secrets.json"
SNAPSHOT_MANIFEST = "/etc/gpufleet/etcd-snapshot.json"
PROGRAMS = "/usr/local/bin"
URL = re.compile(r"https?://[^/,;\s\"']+")


class UnmappedValueError(ValueError):
    """A path or address that has no place here: value is the whole, where says in what it stands."""

    def __init__(self, where: str, value: str, why: str) -> None:
        self.where, self.value, self.why = where, value, why
        self.remedy = "name the flag or field in rehearsal/local_cluster/path_fields.py"
        super().__init__(f"{where} holds {value[:200]!r}: {why}; {self.remedy}")


@dataclass(frozen=True)
class MachineMapping:
    """Where one machine is: hosts maps every name and address of the plan to the machine that has it; vault tells where a vault is."""

    machine: str
    root: Path
    hosts: Mapping[str, str]
    port: Callable[[str], int]
    vault: Callable[[str], str]

    def path(self, machine_path: str) -> Path:
        """Where a path of the machine lies; Unplaced for one that is not its own."""
        if not f"{machine_path}/".startswith(MACHINE_PATHS) or ".." in machine_path.split("/"):
            raise UnmappedValueError(self.machine, machine_path, f"a machine's own paths begin with one of {' '.join(MACHINE_PATHS)}")
        return self.root / machine_path[1:]

    def listens(self, port: int, host: str = LOOPBACK) -> int:
        """Port of loopback that stands for a port of a host; Unplaced for a host that nobody has."""
        owner = self.machine if host in OWN else self.hosts.get(host)
        if owner is None:
            raise UnmappedValueError(self.machine, f"{host}:{port}", "no machine of the plan has this address")
        return self.port(f"{owner}/{port}")

    def addresses(self, text: str) -> str:
        """Text with every URL's host and port as they are here; Unplaced for a host that nobody has."""

        def place(found: re.Match[str]) -> str:
            url = urlsplit(found[0])
            if url.port is None or url.hostname is None:
                raise UnmappedValueError(self.machine, found[0], "an address of the plan has a port")
            return f"{url.scheme}://{LOOPBACK}:{self.listens(url.port, url.hostname)}"

        if not URL.search(text):
            raise UnmappedValueError(self.machine, text, "no URL is in it")
        return URL.sub(place, text)

    def value(self, where: str, kind: str | None, text: str) -> str:
        """A value of a kind as it is here; Unplaced where one of no kind holds a machine's path or an address of the plan."""
        if kind == PATH:
            return str(self.path(text))
        if kind == ADDRESSES:
            return self.addresses(text)
        if kind != IDENTIFIER:
            self.refuse_unplaced(where, text)
        return text

    def refuse_unplaced(self, where: str, text: str) -> None:
        """Unplaced where a text holds a path of the machine, or a name or address of the plan."""
        for word in re.split(r"[,;=\s\"']+", text):
            if f"{word}/".startswith(MACHINE_PATHS):
                raise UnmappedValueError(where, text, "this is a path of the machine")
        for found in re.finditer(r"[A-Za-z0-9][A-Za-z0-9.-]*", text):
            if found[0] in self.hosts:
                raise UnmappedValueError(where, text, f"{found[0]} is an address of the plan")

    def argument(self, program: str, word: str) -> str:
        """One argument of a program, --flag=value or a word alone."""
        kinds = FLAGS[program]
        flag, equals, value = word.partition("=")
        if not flag.startswith("--"):
            return self.value(f"{program} of {self.machine}", kinds.get("") if "://" in word else None, word)
        name = flag[2:]
        return f"{flag}={self.value(f'{program} {flag} of {self.machine}', kinds.get(name), value)}" if equals else word

    def arguments(self, program: str, words: Sequence[str]) -> tuple[str, ...]:
        """Arguments of a program, as they are here; KeyError for a program that nothing is known of."""
        return tuple(self.argument(program, word) for word in words)

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Environment of a unit, as it is here."""
        return {name: self.value(f"{name} of {self.machine}", ENVIRONMENT.get(name), value) for name, value in variables.items()}

    def content(self, machine_path: str, text: str) -> str:
        """Text of a file, as programs here must read it; files that only a whole machine reads stay as they are."""
        if machine_path == MANIFEST:
            return self._manifest(text)
        for pattern, fields in FILES:
            if fnmatchcase(machine_path, pattern):
                document = yaml.safe_load(text)
                placed = self._placed(f"{machine_path} of {self.machine}", document, fields, "")
                if machine_path == SNAPSHOT_MANIFEST:
                    placed = {**placed, "programs": str(self.path(PROGRAMS))}
                if machine_path.endswith(".json"):
                    return json.dumps(placed, indent=1) + "\n"
                return text if placed == document else yaml.safe_dump(placed, sort_keys=False)
        return text

    def _placed(self, where: str, node: Any, fields: Mapping[str, str], at: str) -> Any:
        """A document with the values of its fields placed; others are looked at, and stay."""
        if isinstance(node, dict):
            return {key: self._placed(where, one, fields, f"{at}.{key}" if at else str(key)) for key, one in node.items()}
        if isinstance(node, list):
            return [self._placed(where, one, fields, f"{at}.*") for one in node]
        return self.value(f"{where}, {at},", fields.get(at), node) if isinstance(node, str) else node

    def _manifest(self, text: str) -> str:
        """What gpufleet-fetch-secrets is to fetch: the vault as it is served here, and where files go."""
        told = json.loads(text)
        composed = {str(self.path(path)): lines for path, lines in told["compose"].items()}
        for path, lines in told["compose"].items():
            self.refuse_unplaced(f"{path} of {self.machine}", "\n".join(lines))
        placed = {**told, "vault": self.vault(told["vault"]), "directory": str(self.path(told["directory"])), "compose": composed}
        return json.dumps(placed, indent=1) + "\n"
