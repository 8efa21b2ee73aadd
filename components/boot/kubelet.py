"""Flags and configuration of kubelet 1.36 and the reasons for them."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping

import yaml

from components.boot import scripts, secrets
from components.boot.machine import BootFile
from components.boot.secrets import Secrets
from components.boot.shared_settings import LEASE_SECONDS, REPORT_SECONDS, TLS_CIPHER_SUITES, TLS_MIN_VERSION
from components.plan.addresses import NODE_LOCAL_DNS_ADDRESS
from components.plan.model import KUBELET_PORT, ClusterPlan, PoolPlan, RegionPlan, ScaleSetPlan
from components.plan.naming import CLUSTER_DOMAIN
from components.plan.node_labels import IMAGE_LABEL, image_label
from components.plan.vm_sizes import VmSize

PROGRAM = "/usr/local/bin/kubelet"
KUBERNETES = "/etc/kubernetes"
CONFIGURATION = f"{KUBERNETES}/kubelet.yaml"
KUBECONFIG = f"{KUBERNETES}/kubelet.kubeconfig"
CERTIFICATES = "/var/lib/kubelet/pki"
CLIENT_CERTIFICATE = f"{CERTIFICATES}/kubelet-client-current.pem"
"""Client certificate and key: gpufleet-node writes the first, and the kubelet its renewals."""
JOIN_SETTINGS = "/etc/gpufleet/join.json"
AUTHORITY = "cluster-ca-cert"
CONTAINERD_SOCKET = "unix:///run/containerd/containerd.sock"
RESERVED_CPUS = ((96, "0,24,48,72"), (48, "0,24"), (24, "0-1"), (8, "0"))
"""CPUs reserved for the system by the machine's vCPUs, largest first: the same number of each NUMA node (the largest machines have two or
four), so that two pods of half a machine fit. Smaller machines reserve a quarter of a CPU, which pods may borrow."""
RESERVED_MEMORY_PERCENT = 1
RESERVED_MEMORY_MIB = 1_024
"""Memory reserved for the system: 1 GiB and 1 % of the machine, since kubelet and containerd of a large one handle more pods and images."""
STATUS_IMAGES = 20
"""Images in a node's status; every API server has the status of 7,500 nodes in memory, and a training node uses few images."""


def secrets_of() -> Secrets:
    """Return the secrets of a node: the authority that it trusts."""
    return Secrets(vault="node", directory=f"{KUBERNETES}/pki", stored=(AUTHORITY,))


def join_settings(cluster: ClusterPlan) -> BootFile:
    """Return the settings with which gpufleet-node gets the kubelet's first certificate and writes its kubeconfig.

    The bootstrap token changes every few hours. gpufleet-node reads it at each try, and it is never on a disk.
    """
    settings = {
        "server": cluster.api_servers.url,
        "authority": f"{KUBERNETES}/pki/{AUTHORITY}.pem",
        "kubeconfig": KUBECONFIG,
        "certificate": CLIENT_CERTIFICATE,
        "fetch": scripts.FETCH_SECRETS.path,
        "secrets": secrets.MANIFEST,
        "run": "/run/gpufleet/join",
    }
    return BootFile(JOIN_SETTINGS, json.dumps(settings, indent=1) + "\n")


def pool_labels(region: RegionPlan, pool: PoolPlan) -> dict[str, str]:
    """Return the labels that all nodes of a pool register with."""
    location, zone = region.spec.location, pool.spec.zone.value
    return {
        **pool.labels,
        "topology.kubernetes.io/region": location,
        "topology.kubernetes.io/zone": f"{location}-{zone}",
        "node.kubernetes.io/instance-type": pool.size.name,
        IMAGE_LABEL: image_label(pool.image.pin),
    }


def labels(region: RegionPlan, pool: PoolPlan, scale_set: ScaleSetPlan) -> dict[str, str]:
    """Return the labels of a scale set's nodes without their digest; with InfiniBand, the scale set is their domain."""
    domain = {"gpufleet.io/ib-domain": scale_set.infiniband_domain} if scale_set.infiniband_domain else {}
    return pool_labels(region, pool) | domain


def flags(node_labels: Mapping[str, str]) -> dict[str, str | tuple[str, ...]]:
    """Return the flags of the kubelet: values per machine from gpufleet-join and gpufleet-node, and options that the file does not have."""
    return {
        "config": CONFIGURATION,
        "kubeconfig": KUBECONFIG,
        "cert-dir": CERTIFICATES,
        # Overrides maxPods of the file if the machine has fewer addresses than planned.
        "max-pods": "${GPUFLEET_MAX_PODS}",
        "node-ip": "${GPUFLEET_NODE_IP}",
        "provider-id": "${GPUFLEET_PROVIDER_ID}",
        "node-labels": tuple(f"{name}={value}" for name, value in node_labels.items()),
    }


def _taint(text: str) -> dict[str, str]:
    """Return a taint of the plan, KEY=VALUE:EFFECT, in the form of the kubelet's configuration."""
    key, _, rest = text.partition("=")
    value, _, effect = rest.rpartition(":")
    return {"key": key, "value": value, "effect": effect}


def _reserved(size: VmSize) -> dict[str, object]:
    """Return the CPUs and memory reserved for the system."""
    memory = f"{RESERVED_MEMORY_MIB + size.memory_gib * 1_024 * RESERVED_MEMORY_PERCENT // 100}Mi"
    cpus = next((cpus for vcpus, cpus in RESERVED_CPUS if size.vcpus >= vcpus), None)
    if cpus is None:
        return {"systemReserved": {"cpu": "250m", "memory": memory}}
    return {"systemReserved": {"memory": memory}, "reservedSystemCPUs": cpus}


def _placement(size: VmSize) -> dict[str, object]:
    """Return the settings for exclusive CPUs, on GPU machines near the container's GPUs; otherwise the pod is rejected."""
    return {
        "cpuManagerPolicy": "static",
        "topologyManagerPolicy": "restricted" if size.gpus else "best-effort",
        "topologyManagerScope": "pod" if size.gpus else "container",
        **_reserved(size),
        "evictionHard": {
            "memory.available": "1Gi",
            "nodefs.available": "10%",
            "nodefs.inodesFree": "5%",
            "imagefs.available": "10%",
            "pid.available": "5%",
        },
    }


def _security() -> dict[str, object]:
    """Return the settings for authentication, authorization and TLS."""
    return {
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True, "cacheTTL": "2m"},
            "x509": {"clientCAFile": f"{KUBERNETES}/pki/{AUTHORITY}.pem"},
        },
        "authorization": {"mode": "Webhook", "webhook": {"cacheAuthorizedTTL": "5m", "cacheUnauthorizedTTL": "30s"}},
        "rotateCertificates": True,
        "serverTLSBootstrap": True,
        "tlsMinVersion": TLS_MIN_VERSION,
        "tlsCipherSuites": list(TLS_CIPHER_SUITES),
        "readOnlyPort": 0,
        "protectKernelDefaults": True,
        "streamingConnectionIdleTimeout": "1h",
        "enableProfilingHandler": False,
        "seccompDefault": True,
    }


def _scale() -> dict[str, object]:
    """Return the settings that limit the node's load on the API servers."""
    return {
        # Computed on the node; a change is reported immediately, independent of the next two settings.
        "nodeStatusUpdateFrequency": "10s",
        "nodeStatusReportFrequency": f"{REPORT_SECONDS}s",
        "nodeLeaseDurationSeconds": LEASE_SECONDS,
        "nodeStatusMaxImages": STATUS_IMAGES,
        # A broken node writes events continuously: five per second at most.
        "eventRecordQPS": 5,
        "eventBurst": 25,
    }


def _images() -> dict[str, object]:
    """Return the settings for images; one large image must not delay all others: https://openai.com/index/scaling-kubernetes-to-2500-nodes/"""
    return {
        "serializeImagePulls": False,
        "maxParallelImagePulls": 10,
        "registryPullQPS": 10,
        "registryBurst": 20,
        "imageGCHighThresholdPercent": 85,
        "imageGCLowThresholdPercent": 75,
        "containerLogMaxSize": "50Mi",
        "containerLogMaxFiles": 5,
    }


def configuration(cluster: ClusterPlan, pool: PoolPlan) -> str:
    """Return the KubeletConfiguration of a pool's nodes as YAML: https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/"""
    return _configuration(pool.size, pool.max_pods, pool.taints, cluster.network.dns_service_address)


@functools.cache
def _configuration(size: VmSize, pods: int, taints: tuple[str, ...], dns_service: str) -> str:
    """Return the configuration, cached for all scale sets of a pool: YAML takes longer than the rest of a boot document."""
    document = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "port": KUBELET_PORT,
        "containerRuntimeEndpoint": CONTAINERD_SOCKET,
        "cgroupDriver": "systemd",
        "clusterDomain": CLUSTER_DOMAIN,
        # The second is used while the node's own cache restarts.
        "clusterDNS": [NODE_LOCAL_DNS_ADDRESS, dns_service],
        # The file of systemd-resolved has a resolver on loopback, which a pod cannot reach.
        "resolvConf": "/run/systemd/resolve/resolv.conf",
        # At most the number of addresses: another pod would be scheduled and wait without an address.
        "maxPods": pods,
        "registerWithTaints": [_taint(text) for text in taints],
        # For an unannounced shutdown; a terminate notification gives pods 15 minutes before it. System pods stop last.
        "shutdownGracePeriod": "150s",
        "shutdownGracePeriodCriticalPods": "30s",
        "failSwapOn": True,
        **_placement(size),
        **_security(),
        **_scale(),
        **_images(),
    }
    return yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, width=200)
