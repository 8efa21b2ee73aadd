"""Mapping of a machine's paths and addresses to this machine: paths to a folder, addresses to ports of loopback."""

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

from components.errors import GpufleetError
from rehearsal.local_cluster.path_fields import ADDRESSES, ENVIRONMENT, FILES, FLAGS, IDENTIFIER, PATH, VAULT

LOOPBACK = "127.0.0.1"
OWN = (LOOPBACK, "localhost")
MACHINE_PATHS = ("/etc/", "/var/", "/run/", "/usr/local/", "/tmp/")  # noqa: S108 (of the machine, not of this one)
MANIFEST = "/etc/gpufleet/secrets.json"
SNAPSHOT_MANIFEST = "/etc/gpufleet/etcd-snapshot.json"
PROGRAMS = "/usr/local/bin"
URL = re.compile(r"https?://[^/,;\s\"']+")


class UnmappedValueError(GpufleetError, ValueError):
    """A path or address without a mapping: the value that contains it, and the location of the value (where)."""

    def __init__(self, where: str, value: str, why: str) -> None:
        self.where, self.value, self.why = where, value, why
        self.remedy = "list the flag or field in rehearsal/local_cluster/path_fields.py"
        super().__init__(f"{where} contains {value[:200]!r}: {why}; {self.remedy}")


@dataclass(frozen=True)
class MachineMapping:
    """Mapping of one machine: hosts maps every name and address of the plan to its machine; vault returns the URL of a vault."""

    machine: str
    root: Path
    hosts: Mapping[str, str]
    port: Callable[[str], int]
    vault: Callable[[str], str]

    def path(self, machine_path: str) -> Path:
        """Return the local path of a path on the machine; raise UnmappedValueError for a path that belongs to no machine."""
        if not f"{machine_path}/".startswith(MACHINE_PATHS) or ".." in machine_path.split("/"):
            raise UnmappedValueError(self.machine, machine_path, f"a machine's own paths begin with one of {' '.join(MACHINE_PATHS)}")
        return self.root / machine_path[1:]

    def listens(self, port: int, host: str = LOOPBACK) -> int:
        """Return the loopback port of a host's port; raise UnmappedValueError for an unknown host."""
        owner = self.machine if host in OWN else self.hosts.get(host)
        if owner is None:
            raise UnmappedValueError(self.machine, f"{host}:{port}", "no machine of the plan has this address")
        return self.port(f"{owner}/{port}")

    def addresses(self, text: str) -> str:
        """Return a text with the host and port of every URL mapped; raise UnmappedValueError for an unknown host."""

        def mapped(found: re.Match[str]) -> str:
            url = urlsplit(found[0])
            if url.port is None or url.hostname is None:
                raise UnmappedValueError(self.machine, found[0], "an address of the plan has a port")
            return f"{url.scheme}://{LOOPBACK}:{self.listens(url.port, url.hostname)}"

        if not URL.search(text):
            raise UnmappedValueError(self.machine, text, "it contains no URL")
        return URL.sub(mapped, text)

    def value(self, where: str, kind: str | None, text: str) -> str:
        """Return a mapped value; raise UnmappedValueError if a value of no kind contains a machine's path or an address of the plan."""
        if kind == PATH:
            return str(self.path(text))
        if kind == ADDRESSES:
            return self.addresses(text)
        if kind == VAULT:
            return self.vault(text)
        if kind != IDENTIFIER:
            self.refuse_unmapped(where, text)
        return text

    def refuse_unmapped(self, where: str, text: str) -> None:
        """Raise UnmappedValueError if a text contains a path of the machine, or a name or address of the plan."""
        for word in re.split(r"[,;=\s\"']+", text):
            if f"{word}/".startswith(MACHINE_PATHS):
                raise UnmappedValueError(where, text, "this is a path of the machine")
        for found in re.finditer(r"[A-Za-z0-9][A-Za-z0-9.-]*", text):
            if found[0] in self.hosts:
                raise UnmappedValueError(where, text, f"{found[0]} is an address of the plan")

    def argument(self, program: str, word: str) -> str:
        """Return a mapped argument of a program: --flag=value or a single word."""
        kinds = FLAGS[program]
        flag, equals, value = word.partition("=")
        if not flag.startswith("--"):
            return self.value(f"{program} of {self.machine}", kinds.get("") if "://" in word else None, word)
        name = flag[2:]
        return f"{flag}={self.value(f'{program} {flag} of {self.machine}', kinds.get(name), value)}" if equals else word

    def arguments(self, program: str, words: Sequence[str]) -> tuple[str, ...]:
        """Return the mapped arguments of a program; raise KeyError for an unknown program."""
        return tuple(self.argument(program, word) for word in words)

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the mapped environment of a unit."""
        return {name: self.value(f"{name} of {self.machine}", ENVIRONMENT.get(name), value) for name, value in variables.items()}

    def content(self, machine_path: str, text: str) -> str:
        """Return the mapped content of a file; files that only a whole machine reads are unchanged."""
        if machine_path == MANIFEST:
            return self._manifest(text)
        for pattern, fields in FILES:
            if fnmatchcase(machine_path, pattern):
                document = yaml.safe_load(text)
                mapped = self._mapped(f"{machine_path} of {self.machine}", document, fields, "")
                if machine_path == SNAPSHOT_MANIFEST:
                    mapped = {**mapped, "programs": str(self.path(PROGRAMS))}
                if machine_path.endswith(".json"):
                    return json.dumps(mapped, indent=1) + "\n"
                return text if mapped == document else yaml.safe_dump(mapped, sort_keys=False)
        return text

    def _mapped(self, where: str, node: Any, fields: Mapping[str, str], at: str) -> Any:
        """Return a document with its fields' values mapped; other values are checked and unchanged."""
        if isinstance(node, dict):
            return {key: self._mapped(where, one, fields, f"{at}.{key}" if at else str(key)) for key, one in node.items()}
        if isinstance(node, list):
            return [self._mapped(where, one, fields, f"{at}.*") for one in node]
        return self.value(f"{where}, {at},", fields.get(at), node) if isinstance(node, str) else node

    def _manifest(self, text: str) -> str:
        """Return the manifest of gpufleet-fetch-secrets with the local vault's URL and local paths."""
        manifest = json.loads(text)
        composed = {str(self.path(path)): lines for path, lines in manifest["compose"].items()}
        for path, lines in manifest["compose"].items():
            self.refuse_unmapped(f"{path} of {self.machine}", "\n".join(lines))
        mapped = {
            **manifest,
            "vault": self.vault(manifest["vault"]),
            "directory": str(self.path(manifest["directory"])),
            "compose": composed,
        }
        return json.dumps(mapped, indent=1) + "\n"
