"""Boot files of GPU machines: persistence mode and NCCL configuration."""

from __future__ import annotations

from components.boot.machine import BootFile
from components.boot.unit import unit
from components.plan.vm_sizes import VmSize

PERSISTENCE_UNIT = "gpufleet-gpu-persistence.service"
NCCL_CONFIGURATION = "/etc/gpufleet/nccl.conf"
"""Not /etc/nccl.conf: a service of the HPC images overwrites that file at every start with a path that containers do not have."""
NCCL_READS = "/etc/nccl.conf"
TOPOLOGY_DIRECTORY = "/opt/microsoft"
"""Directory of NCCL's topology files in the HPC images; NCCL cannot detect the topology inside a virtual machine:
https://github.com/Azure/azhpc-images/blob/8e9d055fb9e1f7385da734969793861c447958a1/components/setup_sku_customizations.sh"""


def _persistence() -> BootFile:
    """Return the unit that keeps the driver loaded between jobs, since loading takes seconds per GPU."""
    return unit(
        PERSISTENCE_UNIT,
        "GPU persistence mode",
        ("After=nvidia-persistenced.service",),
        ("Type=oneshot", "RemainAfterExit=yes", "ExecStart=/usr/bin/nvidia-smi -pm 1", "Restart=on-failure", "RestartSec=10"),
    )


def _nccl(size: VmSize) -> BootFile | None:
    """Return NCCL's configuration; None if the size has no topology file.

    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    if size.nccl_topology is None:
        return None
    lines = [f"NCCL_TOPO_FILE={TOPOLOGY_DIRECTORY}/{size.nccl_topology}", "NCCL_IGNORE_CPU_AFFINITY=1"]
    if size.infiniband_ports:
        lines.append("NCCL_IB_PCI_RELAXED_ORDERING=1")
    return BootFile(NCCL_CONFIGURATION, "\n".join(lines) + "\n")


def container_files(size: VmSize) -> dict[str, str]:
    """Return the host files that NCCL needs in containers, by path in the container; empty if the size has no topology file."""
    if size.nccl_topology is None:
        return {}
    topology = f"{TOPOLOGY_DIRECTORY}/{size.nccl_topology}"
    return {NCCL_READS: NCCL_CONFIGURATION, topology: topology}


def gpu_files(size: VmSize) -> tuple[BootFile, ...]:
    """Return the files of a machine with GPUs; empty for a size without."""
    if not size.gpus:
        return ()
    nccl = _nccl(size)
    return (_persistence(),) if nccl is None else (_persistence(), nccl)
