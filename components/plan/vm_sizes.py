"""VM sizes that a plan may use, as data."""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1024**3


@dataclass(frozen=True)
class VmSize:
    """One Azure VM size.

    memory_gib, gpu_memory_gib (per GPU) and local_nvme_gib (all devices) in GiB; infiniband_gbps is the rate of one of infiniband_ports;
    network_mbit is the maximum rate of the size's network interfaces in Mbit/s, None if unknown;
    os_disk_placement is the placement of the ephemeral OS disk (CacheDisk, ResourceDisk, NvmeDisk), None if the size has no space for one.
    """

    name: str
    family: str
    vcpus: int
    memory_gib: int
    gpus: int = 0
    gpu: str = ""
    gpu_memory_gib: int = 0
    infiniband_ports: int = 0
    infiniband_gbps: int = 0
    local_nvme_disks: int = 0
    local_nvme_gib: int = 0
    os_disk_placement: str | None = None
    disk_controller: str = "SCSI"
    network_mbit: int | None = None
    nccl_topology: str | None = None
    source: str = ""


_SIZES = "https://learn.microsoft.com/azure/virtual-machines/sizes/"
_COMPUTE_DOCS = "https://github.com/MicrosoftDocs/azure-compute-docs/blob"
_H100 = f"{_COMPUTE_DOCS}/02773904/articles/virtual-machines/sizes/gpu-accelerated/ndh100v5-series.md"
_H200 = f"{_COMPUTE_DOCS}/3b74475c/articles/virtual-machines/sizes/gpu-accelerated/nd-h200-v5-series.md"
_NDA100 = f"{_COMPUTE_DOCS}/05e75b14/articles/virtual-machines/sizes/gpu-accelerated/ndma100v4-series.md"
_NCA100 = f"{_COMPUTE_DOCS}/1827cf35/articles/virtual-machines/sizes/gpu-accelerated/nca100v4-series.md"
_LSV3 = f"{_COMPUTE_DOCS}/05e75b14/articles/virtual-machines/sizes/storage-optimized/lsv3-series.md"
_DSV5 = f"{_SIZES}general-purpose/dsv5-series"
_ESV5 = f"{_SIZES}memory-optimized/esv5-series"
_DADSV6 = f"{_COMPUTE_DOCS}/1827cf35/articles/virtual-machines/sizes/general-purpose/dadsv6-series.md"

_ROWS = (
    VmSize(
        "Standard_ND96isr_H100_v5",
        family="standardNDSH100v5Family",
        vcpus=96,
        memory_gib=1900,
        gpus=8,
        gpu="H100",
        gpu_memory_gib=80,
        infiniband_ports=8,
        infiniband_gbps=400,
        local_nvme_disks=8,
        local_nvme_gib=28672,
        os_disk_placement="ResourceDisk",
        nccl_topology="ndv5-topo.xml",
        network_mbit=80_000,
        source=_H100,
    ),
    VmSize(
        "Standard_ND96isr_H200_v5",
        family="standardNDISRH200V5Family",
        vcpus=96,
        memory_gib=1850,
        gpus=8,
        gpu="H200",
        gpu_memory_gib=141,
        infiniband_ports=8,
        infiniband_gbps=400,
        local_nvme_disks=8,
        local_nvme_gib=28672,
        os_disk_placement="ResourceDisk",
        nccl_topology="ndv5-topo.xml",
        network_mbit=80_000,
        source=_H200,
    ),
    VmSize(
        "Standard_ND96amsr_A100_v4",
        family="standardNDAMSv4_A100Family",
        vcpus=96,
        memory_gib=1900,
        gpus=8,
        gpu="A100",
        gpu_memory_gib=80,
        infiniband_ports=8,
        infiniband_gbps=200,
        local_nvme_disks=8,
        local_nvme_gib=6400,
        os_disk_placement="CacheDisk",
        nccl_topology="ndv4-topo.xml",
        network_mbit=24_000,
        source=_NDA100,
    ),
    VmSize(
        "Standard_NC24ads_A100_v4",
        family="StandardNCADSA100v4Family",
        vcpus=24,
        memory_gib=220,
        gpus=1,
        gpu="A100",
        gpu_memory_gib=80,
        local_nvme_disks=1,
        local_nvme_gib=960,
        os_disk_placement="CacheDisk",
        network_mbit=20_000,
        source=_NCA100,
    ),
    VmSize(
        "Standard_NC48ads_A100_v4",
        family="StandardNCADSA100v4Family",
        vcpus=48,
        memory_gib=440,
        gpus=2,
        gpu="A100",
        gpu_memory_gib=80,
        local_nvme_disks=2,
        local_nvme_gib=1920,
        os_disk_placement="CacheDisk",
        network_mbit=40_000,
        source=_NCA100,
    ),
    VmSize(
        "Standard_NC96ads_A100_v4",
        family="StandardNCADSA100v4Family",
        vcpus=96,
        memory_gib=880,
        gpus=4,
        gpu="A100",
        gpu_memory_gib=80,
        local_nvme_disks=4,
        local_nvme_gib=3840,
        os_disk_placement="CacheDisk",
        network_mbit=80_000,
        source=_NCA100,
    ),
    VmSize(
        "Standard_L8s_v3",
        family="standardLSv3Family",
        vcpus=8,
        memory_gib=64,
        local_nvme_disks=1,
        local_nvme_gib=1788,
        source=_LSV3,
    ),
    VmSize(
        "Standard_L16s_v3",
        family="standardLSv3Family",
        vcpus=16,
        memory_gib=128,
        local_nvme_disks=2,
        local_nvme_gib=3576,
        source=_LSV3,
    ),
    VmSize("Standard_D2s_v5", family="standardDSv5Family", vcpus=2, memory_gib=8, network_mbit=12_500, source=_DSV5),
    VmSize("Standard_D4s_v5", family="standardDSv5Family", vcpus=4, memory_gib=16, network_mbit=12_500, source=_DSV5),
    VmSize("Standard_D8s_v5", family="standardDSv5Family", vcpus=8, memory_gib=32, network_mbit=12_500, source=_DSV5),
    VmSize("Standard_D16s_v5", family="standardDSv5Family", vcpus=16, memory_gib=64, network_mbit=12_500, source=_DSV5),
    VmSize("Standard_D32s_v5", family="standardDSv5Family", vcpus=32, memory_gib=128, network_mbit=16_000, source=_DSV5),
    VmSize("Standard_D64s_v5", family="standardDSv5Family", vcpus=64, memory_gib=256, network_mbit=30_000, source=_DSV5),
    VmSize("Standard_D96s_v5", family="standardDSv5Family", vcpus=96, memory_gib=384, network_mbit=35_000, source=_DSV5),
    VmSize("Standard_E16s_v5", family="standardESv5Family", vcpus=16, memory_gib=128, source=_ESV5),
    VmSize("Standard_E32s_v5", family="standardESv5Family", vcpus=32, memory_gib=256, source=_ESV5),
    VmSize("Standard_E64s_v5", family="standardESv5Family", vcpus=64, memory_gib=512, source=_ESV5),
    VmSize(
        "Standard_D2ads_v6",
        family="standardDADv6Family",
        vcpus=2,
        memory_gib=8,
        local_nvme_disks=1,
        local_nvme_gib=110,
        os_disk_placement="NvmeDisk",
        disk_controller="NVMe",
        network_mbit=12_500,
        source=_DADSV6,
    ),
    VmSize(
        "Standard_D4ads_v6",
        family="standardDADv6Family",
        vcpus=4,
        memory_gib=16,
        local_nvme_disks=1,
        local_nvme_gib=220,
        os_disk_placement="NvmeDisk",
        disk_controller="NVMe",
        network_mbit=12_500,
        source=_DADSV6,
    ),
    VmSize(
        "Standard_D8ads_v6",
        family="standardDADv6Family",
        vcpus=8,
        memory_gib=32,
        local_nvme_disks=1,
        local_nvme_gib=440,
        os_disk_placement="NvmeDisk",
        disk_controller="NVMe",
        network_mbit=12_500,
        source=_DADSV6,
    ),
    VmSize(
        "Standard_D16ads_v6",
        family="standardDADv6Family",
        vcpus=16,
        memory_gib=64,
        local_nvme_disks=2,
        local_nvme_gib=880,
        os_disk_placement="NvmeDisk",
        disk_controller="NVMe",
        network_mbit=16_000,
        source=_DADSV6,
    ),
)

VM_SIZES: dict[str, VmSize] = {row.name: row for row in _ROWS}
