"""Configuration and units of containerd 2 on a node."""

from __future__ import annotations

from components.boot import gpu, nvme, runtime_spec, scripts
from components.boot.machine import BootFile
from components.boot.unit import drop_in, unit
from components.plan.vm_sizes import VmSize

UNIT = "containerd.service"
PRELOAD_UNIT = "gpufleet-preload-images.service"
CONFIGURATION = "/etc/containerd/config.toml"
ROOT = "/var/lib/containerd"
PAUSE_IMAGE = "registry.k8s.io/pause:3.10.2"
"""Image of the pause container, preloaded: pulling it through one NAT address exceeded a registry's quota, and no pod could start.
https://openai.com/index/scaling-kubernetes-to-2500-nodes/"""
CONCURRENT_DOWNLOADS = 10
"""Layers of one image that are pulled at the same time: https://openai.com/index/scaling-kubernetes-to-2500-nodes/"""
_RUNTIME = "plugins.'io.containerd.cri.v1.runtime'.containerd"
_BASE = f"""\
version = 3
root = '{ROOT}'

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '{PAUSE_IMAGE}'

[plugins.'io.containerd.cri.v1.images'.registry]
config_path = '/etc/containerd/certs.d'

# Pulls go by the transfer service, which has a bound of its own; the image service's would send them the old way.
[plugins.'io.containerd.transfer.v1.local']
max_concurrent_downloads = {CONCURRENT_DOWNLOADS}

[{_RUNTIME}]
default_runtime_name = 'runc'
"""


def _runtime(name: str, base: str, options: str) -> str:
    """Return the tables of one runtime, runc or a program that calls it; base is the line with the base specification of containers."""
    table = f"{_RUNTIME}.runtimes.{name}"
    return f"\n[{table}]\nruntime_type = 'io.containerd.runc.v2'\n{base}\n[{table}.options]\nSystemdCgroup = true\n{options}"


def configuration(size: VmSize) -> str:
    """Return config.toml: https://github.com/containerd/containerd/blob/v2.4.2/docs/cri/config.md

    Jobs get their GPUs through the container device interface of containerd. NVIDIA's runtime uses an environment variable of the image. It
    has a runtime class for daemons that need all GPUs; as the default it would give an image that requests all GPUs those of another job.
    """
    base = f"base_runtime_spec = '{runtime_spec.PATH}'\n" if gpu.container_files(size) else ""
    nvidia = _runtime("nvidia", base, "BinaryName = '/usr/bin/nvidia-container-runtime'\n") if size.gpus else ""
    return _BASE + _runtime("runc", base, "") + nvidia


def _mounted_files(size: VmSize) -> tuple[BootFile, ...]:
    """Return the files that mount host files into every container; empty if there are none."""
    mounted = gpu.container_files(size)
    if not mounted:
        return ()
    # No container could start without one of the files, so containerd does not start and reports which file the image lacks.
    asserted = "".join(f"AssertPathExists={host}\n" for host in mounted.values())
    return (runtime_spec.runtime_spec(mounted), BootFile(f"/etc/systemd/system/{UNIT}.d/30-container-files.conf", f"[Unit]\n{asserted}"))


def _preload() -> BootFile:
    """Return the unit that imports the preloaded container images into containerd before the kubelet needs them."""
    return unit(
        PRELOAD_UNIT,
        "Container images of the machine's image",
        (f"Requires={UNIT}", f"After={UNIT}"),
        ("Type=oneshot", "RemainAfterExit=yes", f"ExecStart={scripts.PRELOAD_IMAGES.path}", "Restart=on-failure", "RestartSec=10"),
    )


def containerd_files(size: VmSize) -> tuple[BootFile, ...]:
    """Return containerd's configuration and unit files: dependencies on its data directory, and limits for RDMA memory."""
    on_nvme = nvme.NEEDS if nvme.data_devices(size) else ()
    return (
        BootFile(CONFIGURATION, configuration(size)),
        # Containers inherit the limits; RDMA registers all memory that it sends from.
        drop_in(UNIT, "Service", ("LimitMEMLOCK=infinity", "LimitNOFILE=1048576")),
        *((BootFile("/etc/systemd/system/containerd.service.d/20-nvme.conf", "\n".join(("[Unit]", *on_nvme)) + "\n"),) if on_nvme else ()),
        *_mounted_files(size),
        scripts.PRELOAD_IMAGES,
        _preload(),
    )
