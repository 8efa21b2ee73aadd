"""Container images of gpufleet's pods, with exact versions."""

from __future__ import annotations

from dataclasses import dataclass

_KUBERNETES = "https://github.com/kubernetes/kubernetes/blob/v1.36.3"
_GPU_OPERATOR = (
    "https://github.com/NVIDIA/gpu-operator/blob/a22dbf671f2e26f9a1e342f8eea28e196235e110/"
    "bundle/manifests/gpu-operator-certified.clusterserviceversion.yaml"
)


@dataclass(frozen=True)
class Image:
    """One image: repository, tag, and the digest of its index if a public source gives it; source is the origin of both."""

    repository: str
    tag: str
    source: str
    digest: str | None = None

    @property
    def reference(self) -> str:
        """Value of a container's image field."""
        return f"{self.repository}:{self.tag}" + (f"@{self.digest}" if self.digest else "")


COREDNS = Image(
    "registry.k8s.io/coredns/coredns",
    "v1.14.2",
    f"{_KUBERNETES}/cmd/kubeadm/app/constants/constants.go",
    # https://github.com/cilium/cilium pins the same tag by this digest.
    "sha256:e7e6440cfd1e919280958f5b5a6ab2b184d385bba774c12ad2a9e1e4183f90d9",
)
NODE_LOCAL_DNS = Image(
    "registry.k8s.io/dns/k8s-dns-node-cache", "1.26.7", f"{_KUBERNETES}/cluster/addons/dns/nodelocaldns/nodelocaldns.yaml"
)
NVIDIA_DEVICE_PLUGIN = Image(
    "nvcr.io/nvidia/k8s-device-plugin",
    "v0.20.0",
    _GPU_OPERATOR,
    "sha256:a61ba9fd8efb82f3a79f877f7580e02c1e8e7593f62473644bc9c79e315c3312",
)
DCGM_EXPORTER = Image(
    "nvcr.io/nvidia/k8s/dcgm-exporter",
    "4.6.0-4.8.3-distroless",
    _GPU_OPERATOR,
    "sha256:613ab03c11d442fd960ff515f547e9921537454a712d08160bc8f677f89f1c35",
)
RDMA_SHARED_DEVICE_PLUGIN = Image(
    "ghcr.io/mellanox/k8s-rdma-shared-dev-plugin",
    "v1.5.3",
    "https://github.com/Mellanox/k8s-rdma-shared-dev-plugin/releases/tag/v1.5.3",
)

TRAFFIC = Image("localhost/gpufleet/traffic", "0.1.0", "node-images/traffic/Containerfile")
"""Image that is built with the node images and preloaded in them; it is in no registry. Change the version only when every pool runs an
image with the new version; until then, node images contain both."""


def kube_proxy(kubernetes: str) -> Image:
    """Return the image of kube-proxy for a Kubernetes version, for example 1.36.3; it must be the cluster's: version skew is limited.

    https://kubernetes.io/releases/version-skew-policy/#kube-proxy
    """
    return Image("registry.k8s.io/kube-proxy", f"v{kubernetes}", f"https://github.com/kubernetes/kubernetes/releases/tag/v{kubernetes}")
