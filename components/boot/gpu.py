"""What a GPU machine is told about its GPUs and the network between them."""

from __future__ import annotations

from components.boot.machine import BootFile
from components.boot.unit import unit
from components.plan.vm_sizes import VmSize

PERSISTENCE_UNIT = "gpufleet-gpu-persistence.service"
NCCL_CONFIGURATION = "/etc/gpufleet/nccl.conf"
"""Not /etc/nccl.conf, which a service of the HPC images writes anew at every start, with a path that containers do not have."""
NCCL_READS = "/etc/nccl.conf"
TOPOLOGY_DIRECTORY = "/opt/microsoft"
"""Where the HPC images keep NCCL's topology files, which NCCL cannot find out inside a virtual machine:
https://github.com/Azure/azhpc-images/blob/8e9d055fb9e1f7385da734969793861c447958a1/components/setup_sku_customizations.sh"""


def _persistence() -> BootFile:
    """Unit that keeps the driver loaded between jobs: loading it anew takes seconds per GPU."""
    return unit(
        PERSISTENCE_UNIT,
        "GPU persistence mode",
        ("After=nvidia-persistenced.service",),
        ("Type=oneshot", "RemainAfterExit=yes", "ExecStart=/usr/bin/nvidia-smi -pm 1", "Restart=on-failure", "RestartSec=10"),
    )


def _nccl(size: VmSize) -> BootFile | None:
    """NCCL's configuration, None where the size has no topology file.

    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    if size.nccl_topology is None:
        return None
    lines = [f"NCCL_TOPO_FILE={TOPOLOGY_DIRECTORY}/{size.nccl_topology}", "NCCL_IGNORE_CPU_AFFINITY=1"]
    if size.infiniband_ports:
        lines.append("NCCL_IB_PCI_RELAXED_ORDERING=1")
    return BootFile(NCCL_CONFIGURATION, "\n".join(lines) + "\n")


def container_files(size: VmSize) -> dict[str, str]:
    """What NCCL in a container needs of the host: path in the container to path on the host; empty where the size has no topology file."""
    if size.nccl_topology is None:
        return {}
    topology = f"{TOPOLOGY_DIRECTORY}/{size.nccl_topology}"
    return {NCCL_READS: NCCL_CONFIGURATION, topology: topology}


def gpu_files(size: VmSize) -> tuple[BootFile, ...]:
    """Files of a machine with GPUs; none for one without."""
    if not size.gpus:
        return ()
    nccl = _nccl(size)
    return (_persistence(),) if nccl is None else (_persistence(), nccl)
