"""Calls of the real CNI plugins, as a container runtime makes them, with the machine's conflist."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.azure_network.namespaces import Namespace

IN_POD = "eth0"

PATIENCE = 60.0


class CniError(Exception):
    """A plugin's error, https://www.cni.dev/docs/spec/#error."""

    def __init__(self, plugin: str, command: str, code: int, message: str, details: str) -> None:
        super().__init__(f"{plugin} {command}: code {code}: {message} {details}".rstrip())
        self.plugin, self.command, self.code, self.message, self.details = plugin, command, code, message, details


@dataclass(frozen=True)
class Sandbox:
    """A pod before it has an address: its id, its network namespace, and its Kubernetes names."""

    id: str
    netns: Path
    namespace: str = "default"
    pod: str = ""
    port_mappings: Sequence[Mapping[str, Any]] = ()

    def environment(self, command: str, plugins: Mapping[str, Path]) -> dict[str, str]:
        """Return the protocol's variables, https://www.cni.dev/docs/spec/#parameters."""
        names = (
            f"IgnoreUnknown=1;K8S_POD_NAMESPACE={self.namespace};K8S_POD_NAME={self.pod or self.id};K8S_POD_INFRA_CONTAINER_ID={self.id}"
        )
        folders = sorted({str(path.parent) for path in plugins.values()})
        return {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": self.id,
            "CNI_NETNS": str(self.netns),
            "CNI_IFNAME": IN_POD,
            "CNI_PATH": ":".join(folders),
            "CNI_ARGS": names,
        }


@dataclass(frozen=True)
class Runtime:
    """A container runtime: it calls plugins for the sandboxes of one machine, inside its namespace."""

    machine: Namespace
    plugins: Mapping[str, Path]

    def add(self, sandbox: Sandbox, conflist: Mapping[str, Any]) -> dict[str, Any]:
        """Call ADD of every plugin in order; return the last result. Raises CniError at the first failure and undoes nothing."""
        result: dict[str, Any] = {}
        for plugin in conflist["plugins"]:
            result = self.call("ADD", sandbox, configuration(conflist, plugin, sandbox, result))
        return result

    def delete(self, sandbox: Sandbox, conflist: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Call DEL of every plugin in reverse order, each with the result of the ADD."""
        for plugin in reversed(conflist["plugins"]):
            self.call("DEL", sandbox, configuration(conflist, plugin, sandbox, result))

    def call(self, command: str, sandbox: Sandbox, given: Mapping[str, Any]) -> dict[str, Any]:
        """Call one plugin once and return its result; raise CniError."""
        program = self.plugins[given["type"]]
        environment = os.environ | self.machine.environment | sandbox.environment(command, self.plugins)
        done = self.machine.within(
            lambda: subprocess.run(
                [str(program)], input=json.dumps(given), capture_output=True, text=True, timeout=PATIENCE, check=False, env=environment
            )
        )
        said: dict[str, Any] = json.loads(done.stdout) if done.stdout.strip() else {}
        if done.returncode:
            message = said.get("msg", done.stderr.strip())
            raise CniError(program.name, command, said.get("code", done.returncode), message, said.get("details", ""))
        return said


def configuration(conflist: Mapping[str, Any], plugin: Mapping[str, Any], sandbox: Sandbox, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of a plugin, with its runtime capabilities: https://www.cni.dev/docs/spec/#section-2-execution-protocol."""
    given = {name: value for name, value in plugin.items() if name != "capabilities"}
    given |= {"cniVersion": conflist["cniVersion"], "name": conflist["name"]}
    if plugin.get("capabilities", {}).get("portMappings") and sandbox.port_mappings:
        given["runtimeConfig"] = {"portMappings": list(sandbox.port_mappings)}
    return {**given, "prevResult": dict(result)} if result else given
