"""Programs of gpufleet on machines: static files, the same on all machines of a role."""

from __future__ import annotations

from pathlib import Path

from components.boot.machine import BootFile

DIRECTORY = "/usr/local/sbin"
_FILES = Path(__file__).parent / "files"


def _script(name: str, source: str) -> BootFile:
    return BootFile(f"{DIRECTORY}/{name}", (_FILES / source).read_text(), mode="0755")


FETCH_SECRETS = _script("gpufleet-fetch-secrets", "fetch_secrets.py")
NVME = _script("gpufleet-nvme", "nvme.py")
ETCD_GUARD = _script("gpufleet-etcd-guard", "etcd_guard.sh")
ETCD_RING = _script("gpufleet-etcd-ring", "etcd_ring.py")
AZURE_ENDPOINTS = _script("gpufleet-azure-endpoints", "azure_endpoints.sh")
JOIN = _script("gpufleet-join", "join.py")
PRELOAD_IMAGES = _script("gpufleet-preload-images", "preload_images.sh")
