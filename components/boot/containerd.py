"""How containerd 2 is configured on a node, and why."""

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
"""What every pod starts with, from the machine's image: pulled through one NAT address, it ran into a registry's quota and no pod started.
https://openai.com/index/scaling-kubernetes-to-2500-nodes/"""
CONCURRENT_DOWNLOADS = 10
"""Layers of one image that are pulled at once: https://openai.com/index/scaling-kubernetes-to-2500-nodes/"""
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
    """One runtime of containerd, runc or a program that calls it; base is the line with the specification that containers start from."""
    table = f"{_RUNTIME}.runtimes.{name}"
    return f"\n[{table}]\nruntime_type = 'io.containerd.runc.v2'\n{base}\n[{table}.options]\nSystemdCgroup = true\n{options}"


def configuration(size: VmSize) -> str:
    """config.toml: https://github.com/containerd/containerd/blob/v2.4.2/docs/cri/config.md

    Jobs get their GPUs by the container device interface, which containerd serves itself. NVIDIA's runtime, which obeys an environment
    variable of the image, is there by name for the daemons that look at every GPU; as the default it would show an image that asks for all
    GPUs those of another job.
    """
    base = f"base_runtime_spec = '{runtime_spec.PATH}'\n" if gpu.container_files(size) else ""
    nvidia = _runtime("nvidia", base, "BinaryName = '/usr/bin/nvidia-container-runtime'\n") if size.gpus else ""
    return _BASE + _runtime("runc", base, "") + nvidia


def _handed(size: VmSize) -> tuple[BootFile, ...]:
    """What hands files of the host to every container; none where there are none."""
    handed = gpu.container_files(size)
    if not handed:
        return ()
    # Without one of the files no container would start: containerd itself does not, and says which file the image lacks.
    asserted = "".join(f"AssertPathExists={host}\n" for host in handed.values())
    return (runtime_spec.runtime_spec(handed), BootFile(f"/etc/systemd/system/{UNIT}.d/30-container-files.conf", f"[Unit]\n{asserted}"))


def _preload() -> BootFile:
    """Unit that brings the image's container images into containerd's store, before the kubelet asks for them."""
    return unit(
        PRELOAD_UNIT,
        "Container images of the machine's image",
        (f"Requires={UNIT}", f"After={UNIT}"),
        ("Type=oneshot", "RemainAfterExit=yes", f"ExecStart={scripts.PRELOAD_IMAGES.path}", "Restart=on-failure", "RestartSec=10"),
    )


def containerd_files(size: VmSize) -> tuple[BootFile, ...]:
    """containerd's configuration and what its unit is told: where its data is, and that RDMA may pin all memory."""
    on_nvme = nvme.NEEDS if nvme.data_devices(size) else ()
    return (
        BootFile(CONFIGURATION, configuration(size)),
        # Containers inherit the limit; RDMA registers all memory that it sends from.
        drop_in(UNIT, "Service", ("LimitMEMLOCK=infinity", "LimitNOFILE=1048576")),
        *((BootFile("/etc/systemd/system/containerd.service.d/20-nvme.conf", "\n".join(("[Unit]", *on_nvme)) + "\n"),) if on_nvme else ()),
        *_handed(size),
        scripts.PRELOAD_IMAGES,
        _preload(),
    )
