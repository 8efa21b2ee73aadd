"""A machine of the test network: its NIC's addresses, its files, the node program on it, and its pods."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.support.azure_network.cni_calls import CniError, Runtime, Sandbox
from tests.support.azure_network.namespaces import Namespace, make
from tests.support.azure_network.platform_services import IMDS, Metadata

REPOSITORY = Path(__file__).parents[2]

CONFLIST = "10-gpufleet.conflist"

LOOPBACK = {"cniVersion": "1.0.0", "name": "lo", "plugins": [{"type": "loopback"}]}

SETTINGS: dict[str, Any] = {
    "version": 1,
    "mode": "native",
    "internal": ["10.0.0.0/8"],
    "not_masqueraded": ["10.0.0.0/8"],
    "service_cidr": "10.255.0.0/16",
    "snat": True,
    "mtu": 1500,
    "planned_pods": 30,
    "host_network_pods": 3,
    "shaping": None,
}
"""/etc/gpufleet/network.json of a machine; `configure` changes it."""

T = TypeVar("T")


@dataclass
class Pod:
    """A pod that has an address: its namespace and the result of the plugins."""

    inside: Namespace
    sandbox: Sandbox
    result: Mapping[str, Any]

    @property
    def address(self) -> str:
        return str(self.result["ips"][0]["address"]).partition("/")[0]

    @property
    def veth(self) -> str:
        """Return the machine's device that leads to the pod."""
        return next(str(one["name"]) for one in self.result["interfaces"] if not one.get("sandbox"))

    def run(self, *words: str, given: str | None = None, check: bool = True, timeout: float = 30.0) -> str:
        return self.inside.run(*words, given=given, check=check, timeout=timeout)

    def within(self, work: Callable[[], T]) -> T:
        return self.inside.within(work)


@dataclass
class Machine:
    """A machine whose eth0 is connected to the network; `state` replaces /run/gpufleet, and `cni` replaces /etc/cni/net.d."""

    inside: Namespace
    name: str
    mac: str
    primary: str
    secondaries: tuple[str, ...]
    prefix_length: int
    imds: Metadata
    folder: Path
    plugins: Mapping[str, Path]
    pods: list[Pod] = field(default_factory=list)
    _sandboxes: list[Namespace] = field(default_factory=list)

    @property
    def state(self) -> Path:
        return self.folder / "run"

    @property
    def cni(self) -> Path:
        return self.folder / "net.d"

    @property
    def settings(self) -> Path:
        return self.folder / "network.json"

    @property
    def imds_document(self) -> dict[str, Any]:
        """Return the machine's document in the metadata service; tests change it in place."""
        return self.imds.document

    @property
    def runtime(self) -> Runtime:
        return Runtime(self.inside, self.plugins)

    @property
    def conflist(self) -> dict[str, Any]:
        """Return the configuration that the node program has written for the container runtime."""
        written: dict[str, Any] = json.loads((self.cni / CONFLIST).read_text())
        return written

    def run(self, *words: str, given: str | None = None, check: bool = True, timeout: float = 30.0) -> str:
        return self.inside.run(*words, given=given, check=check, timeout=timeout)

    def within(self, work: Callable[[], T]) -> T:
        return self.inside.within(work)

    def configure(self, **changes: Any) -> None:
        """Write /etc/gpufleet/network.json from SETTINGS with changes."""
        self.settings.write_text(json.dumps(SETTINGS | {"planned_pods": len(self.secondaries)} | changes))

    def node_command(self, *words: str) -> tuple[str, ...]:
        """Run the node program of the working tree with this machine's files, as gpufleet-node does on a real machine."""
        options = ("--settings", str(self.settings), "--imds", f"http://{IMDS}", "--state", str(self.state), "--cni", str(self.cni))
        return ("env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "cni.node", *words, *options)

    def node(self, *words: str, check: bool = True) -> str:
        """Run the node program, for example `node("apply")`; return its standard output."""
        return self.run(*self.node_command(*words), check=check)

    def apply(self, **changes: Any) -> str:
        """Write the settings and run the node program."""
        self.configure(**changes)
        return self.node("apply")

    def sandbox(self, name: str, namespace: str = "default", port_mappings: Sequence[Mapping[str, Any]] = ()) -> Sandbox:
        """Create a pod's network namespace with loopback only, as a runtime does before it calls plugins."""
        inside = make(f"{self.inside.name}-{name}")
        self._sandboxes.append(inside)
        sandbox = Sandbox(name, inside.path, namespace, name, port_mappings)
        self.runtime.add(sandbox, LOOPBACK)
        return sandbox

    def join(self, sandbox: Sandbox, conflist: Mapping[str, Any] | None = None) -> Pod:
        """Call the plugins for a sandbox; raise CniError."""
        result = self.runtime.add(sandbox, conflist or self.conflist)
        (inside,) = (one for one in self._sandboxes if one.path == sandbox.netns)
        pod = Pod(inside, sandbox, result)
        self.pods.append(pod)
        return pod

    def add_pod(self, name: str, namespace: str = "default", port_mappings: Sequence[Mapping[str, Any]] = ()) -> Pod:
        """Add a pod of this name, which is also its sandbox's id, with the conflist in `cni`.

        If a plugin fails, the earlier ones are undone, as a runtime does. Raises CniError.
        """
        sandbox = self.sandbox(name, namespace, port_mappings)
        try:
            return self.join(sandbox)
        except CniError:
            self.runtime.delete(sandbox, self.conflist, {})
            self.discard(sandbox)
            raise

    def add_pods(self, names: Iterable[str]) -> list[Pod]:
        """Add pods one after another."""
        return [self.add_pod(name) for name in names]

    def delete_pod(self, pod: Pod) -> None:
        """Release a pod with the plugins, and remove its namespace."""
        self.runtime.delete(pod.sandbox, self.conflist, pod.result)
        self.pods.remove(pod)
        self.discard(pod.sandbox)

    def discard(self, sandbox: Sandbox) -> None:
        """Remove a sandbox's namespace without a call of the plugins, as a crash does."""
        (inside,) = (one for one in self._sandboxes if one.path == sandbox.netns)
        self._sandboxes.remove(inside)
        inside.remove()

    def remove(self) -> None:
        """Remove the machine with its pods."""
        for inside in (*self._sandboxes, self.inside):
            inside.remove()
        self._sandboxes.clear()
        self.pods.clear()
