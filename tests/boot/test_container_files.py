"""Containers on a machine with an NCCL topology file have NCCL's files, and are otherwise containerd's default."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from boot_machines import machines, regions
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT4

from components.boot import containerd, gpu, runtime_spec
from components.boot.machine import MachineBoot
from components.plan.vm_sizes import VM_SIZES, VmSize

DEFAULT: dict[str, Any] = json.loads((Path(__file__).parent / "containerd_default_spec.json").read_text())
"""Output of `ctr --namespace k8s.io oci spec` in the version named."""
RUNTIME_SPEC = "github.com/opencontainers/runtime-spec@v1.3.0"
"""The module whose types and schema that version of containerd has."""
WITH_TOPOLOGY = [size for size in VM_SIZES.values() if size.nccl_topology]
NODES = {name: boot for name, boot in machines().items() if boot.role == "node"}


def spec_of(size: VmSize) -> dict[str, Any]:
    """Return the base specification of a machine of a size."""
    found: dict[str, Any] = json.loads(runtime_spec.runtime_spec(gpu.container_files(size)).content)
    return found


def size_of(name: str) -> VmSize:
    """VM size of a machine called region/cluster/pool."""
    region, cluster, pool = name.split("/")
    plan = next(plan for plan in regions() if plan.name == region)
    return next(p.size for c in plan.clusters if c.name == cluster for p in c.pools if p.name == pool)


def runtimes(boot: MachineBoot) -> Mapping[str, Mapping[str, Any]]:
    """containerd's runtimes on a machine."""
    configuration = tomllib.loads(boot.file(containerd.CONFIGURATION).content)
    found: dict[str, dict[str, Any]] = configuration["plugins"]["io.containerd.cri.v1.runtime"]["containerd"]["runtimes"]
    return found


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> jsonschema.Draft4Validator:
    """Schema of a container's specification, of the Open Container Initiative's Go module; skips where it cannot be had."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs go on PATH, to download the module that holds the schema of a container's specification")
    command = [go, "mod", "download", "-json", RUNTIME_SPEC]
    try:
        done = subprocess.run(command, cwd=tmp_path_factory.mktemp("go"), capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"downloading {RUNTIME_SPEC} took over 120 s")
    if done.returncode:
        pytest.skip(f"{RUNTIME_SPEC} cannot be downloaded: {(done.stdout + done.stderr).strip()[:300]}")
    folder = Path(json.loads(done.stdout)["Dir"]) / "schema"
    registry: Registry[Any] = Registry(
        retrieve=lambda uri: Resource.from_contents(json.loads((folder / uri.rpartition("/")[2]).read_text()), DRAFT4)
    )
    return jsonschema.Draft4Validator(json.loads((folder / "config-schema.json").read_text()), registry=registry)


@pytest.mark.parametrize("size", WITH_TOPOLOGY, ids=lambda size: size.name)
def test_the_specification_fits_the_published_schema(size: VmSize, schema: jsonschema.Draft4Validator) -> None:
    assert [error.message for error in schema.iter_errors(spec_of(size))] == []


def test_the_schema_refuses_a_mount_without_destination_and_an_unknown_namespace(schema: jsonschema.Draft4Validator) -> None:
    wrong = spec_of(WITH_TOPOLOGY[0])
    del wrong["mounts"][-1]["destination"]
    wrong["linux"]["namespaces"][0]["type"] = "pids"
    faults = [error.json_path for error in schema.iter_errors(wrong)]
    assert len(faults) == 2


@pytest.mark.parametrize("size", WITH_TOPOLOGY, ids=lambda size: size.name)
def test_the_specification_is_containerds_default_and_two_files_more(size: VmSize) -> None:
    expected = copy.deepcopy(DEFAULT["spec"])
    # containerd takes the limits out of its default for Kubernetes, and writes each container's own cgroup.
    del expected["process"]["rlimits"], expected["linux"]["cgroupsPath"]
    found = spec_of(size)
    handed = found["mounts"][len(expected["mounts"]) :]
    expected["mounts"] += handed
    assert found == expected
    assert [(mount["source"], mount["destination"]) for mount in handed] == [
        ("/etc/gpufleet/nccl.conf", "/etc/nccl.conf"),
        (f"/opt/microsoft/{size.nccl_topology}", f"/opt/microsoft/{size.nccl_topology}"),
    ]
    assert all({"bind", "ro"} <= set(mount["options"]) for mount in handed)


def test_the_default_is_that_of_the_containerd_which_the_images_carry() -> None:
    versions = {image.definition.packages.containerd for region in regions() for image in region.gallery.images}
    assert versions - {None} == {DEFAULT["version"]}


@pytest.mark.parametrize("name", NODES)
def test_every_runtime_of_a_machine_starts_from_the_specification_where_there_is_a_topology_file(name: str) -> None:
    boot, has_topology = NODES[name], size_of(name).nccl_topology is not None
    paths = {item.path for item in boot.files}
    assert (runtime_spec.PATH in paths) == has_topology
    assert {runtime.get("base_runtime_spec") for runtime in runtimes(boot).values()} == {runtime_spec.PATH if has_topology else None}


def test_what_nccl_in_a_container_reads_names_a_file_that_the_container_has() -> None:
    boot = NODES["southcentralus/research-a/h100"]
    mounts = {mount["destination"]: mount["source"] for mount in json.loads(boot.file(runtime_spec.PATH).content)["mounts"]}
    lines = dict(line.split("=") for line in boot.file(mounts["/etc/nccl.conf"]).content.splitlines())
    assert lines["NCCL_TOPO_FILE"] in mounts


def test_containerd_does_not_start_where_a_handed_file_is_missing() -> None:
    boot = NODES["southcentralus/research-a/h100"]
    asserted = boot.file("/etc/systemd/system/containerd.service.d/30-container-files.conf").content.splitlines()
    sources = [mount["source"] for mount in json.loads(boot.file(runtime_spec.PATH).content)["mounts"] if mount["type"] == "bind"]
    assert asserted == ["[Unit]", *(f"AssertPathExists={source}" for source in sources)]
