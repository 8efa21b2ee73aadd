"""Boot files of a node: the kubelet's configuration and flags, its first credentials, and the delay of its join."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import yaml

from cni.node.certificate import token_manifest
from cni.node.errors import NodeNetworkError
from cni.node.settings import Settings, parse
from components.errors import GpufleetError
from rehearsal.local_cluster.boot_files import BootFiles, read_boot
from rehearsal.local_cluster.systemd.unit_file import Command, Unit, read_unit

KUBELET = "kubelet.service"
NVME = "gpufleet-nvme.service"
NETWORK = "gpufleet-node.service"
NETWORK_SETTINGS = "/etc/gpufleet/network.json"
NETWORK_ENVIRONMENT = "/run/gpufleet/network.env"
MAX_PODS = "${GPUFLEET_MAX_PODS}"
UNITS = "/etc/systemd/system"
SECRETS = "/etc/gpufleet/secrets.json"
JOIN = "/etc/gpufleet/join.json"
KUBELET_STATE = "/var/lib/kubelet"
Json = dict[str, Any]


class NodeBootError(GpufleetError):
    """A machine that boots without becoming a node; where is the machine or scale set, what the problem."""

    def __init__(self, where: str, what: str, remedy: str) -> None:
        self.where, self.what, self.remedy = where, what, remedy
        super().__init__(f"{where}: {what}; {remedy}")


@dataclass(frozen=True)
class NodeBoot:
    """The boot files of a node; where is its scale set."""

    where: str
    files: BootFiles

    def file(self, path: str) -> str:
        """Return the content of a file. Raises NodeBootError if there is none."""
        try:
            return self.files.content(path)
        except KeyError:
            raise NodeBootError(self.where, f"its boot files have no {path}", "render it in components/boot/node.py") from None

    def unit(self, name: str) -> Unit:
        """Return a unit that the boot enables. Raises NodeBootError if it does not."""
        if name not in self.files.enabled:
            raise NodeBootError(self.where, f"its boot does not enable {name}", "enable it in components/boot/node.py")
        return read_unit(name, self.file(f"{UNITS}/{name}"))

    @cached_property
    def kubelet_unit(self) -> Unit:
        """Return the kubelet's unit."""
        return self.unit(KUBELET)

    @cached_property
    def flags(self) -> Mapping[str, str]:
        """Return the kubelet's flags by name without dashes, variables unexpanded."""
        return flags_of(self.kubelet_unit.start[0])

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """Return the labels of --node-labels."""
        pairs = (pair.partition("=") for pair in self.flags.get("node-labels", "").split(",") if pair)
        return {name: value for name, _, value in pairs}

    @cached_property
    def kubelet(self) -> Json:
        """Return the KubeletConfiguration that --config names."""
        document = yaml.load(self.file(self.flags["config"]), Loader=yaml.CSafeLoader)
        if not isinstance(document, dict) or document.get("kind") != "KubeletConfiguration":
            raise NodeBootError(self.where, f"{self.flags['config']} is no KubeletConfiguration", "render it in components/boot/kubelet.py")
        return document

    @cached_property
    def network(self) -> Settings:
        """Return the settings of the machine's pod network. Raises NodeBootError if gpufleet-node or the kubelet rejects them."""
        if self.flags.get("max-pods") != MAX_PODS or (NETWORK_ENVIRONMENT, False) not in self.kubelet_unit.environment_files:
            what = f"its kubelet does not take --max-pods={MAX_PODS} from {NETWORK_ENVIRONMENT}"
            raise NodeBootError(self.where, what, "let components/boot/node.py write its unit")
        self.unit(NETWORK)
        try:
            return parse(json.loads(self.file(NETWORK_SETTINGS)), NETWORK_SETTINGS)
        except NodeNetworkError as error:
            raise NodeBootError(self.where, str(error), "render it in cni/settings.py") from None

    @cached_property
    def spread_seconds(self) -> float:
        """Return the seconds over which first joins are spread."""
        found = [one for one in map(flags_of, self.kubelet_unit.start_pre) if "spread-seconds" in one]
        if len(found) != 1:
            raise NodeBootError(self.where, "its kubelet's unit does not start gpufleet-join once", "let components/boot/node.py write it")
        return float(found[0]["spread-seconds"])

    @cached_property
    def data_devices(self) -> int:
        """Return the number of local NVMe devices for the kubelet's state; 0 if it is on the OS disk."""
        if NVME not in self.files.enabled:
            return 0
        command = self.unit(NVME).start[0]
        return int(flags_of(command)["devices"]) if f"--bind={KUBELET_STATE}" in command.argv else 0

    @cached_property
    def secrets(self) -> Json:
        """Return the manifest of the secrets that the machine fetches."""
        manifest: Json = json.loads(self.file(SECRETS))
        return manifest

    @cached_property
    def join(self) -> Json:
        """Return the settings with which gpufleet-node gets the first certificate."""
        settings: Json = json.loads(self.file(JOIN))
        return settings

    @cached_property
    def token_manifest(self) -> Json:
        """Return the settings with which gpufleet-node has the bootstrap token fetched at each try."""
        return token_manifest(self.secrets, self.join["run"])


def node_boot(custom_data: str, where: str) -> NodeBoot:
    """Return the boot files in a machine's custom data (base64). Raises BootFilesError if no machine boots from it."""
    return NodeBoot(where, read_boot(where, custom_data))


def flags_of(command: Command) -> dict[str, str]:
    """Return the flags --NAME=VALUE of a command by name; the last one of a name counts."""
    pairs = (word.removeprefix("--").partition("=") for word in command.argv if word.startswith("--"))
    return {name: value for name, _, value in pairs}
