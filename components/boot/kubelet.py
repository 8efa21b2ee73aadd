"""Which flags and configuration a node's kubelet 1.36 is started with, and why."""

from __future__ import annotations

import functools

import yaml

from components.boot import kubeconfig
from components.boot.secrets import Secrets
from components.boot.shared_settings import LEASE_SECONDS, REPORT_SECONDS, TLS_CIPHER_SUITES, TLS_MIN_VERSION
from components.plan.addresses import NODE_LOCAL_DNS_ADDRESS
from components.plan.model import KUBELET_PORT, ClusterPlan, PoolPlan, RegionPlan, ScaleSetPlan
from components.plan.naming import CLUSTER_DOMAIN
from components.plan.vm_sizes import VmSize

PROGRAM = "/usr/local/bin/kubelet"
KUBERNETES = "/etc/kubernetes"
CONFIGURATION = f"{KUBERNETES}/kubelet.yaml"
KUBECONFIG = f"{KUBERNETES}/kubelet.kubeconfig"
BOOTSTRAP_KUBECONFIG = f"{KUBERNETES}/kubelet-bootstrap.kubeconfig"
AUTHORITY = "cluster-ca-cert"
CONTAINERD_SOCKET = "unix:///run/containerd/containerd.sock"
RESERVED_CPUS = ((96, "0,24,48,72"), (48, "0,24"), (24, "0-1"), (8, "0"))
"""CPUs left to the system by the machine's vCPUs, largest first: as many of each NUMA node, of which the largest machines have two or four,
so that two pods of half a machine both fit theirs. Below that, a quarter of a CPU that pods may borrow."""
RESERVED_MEMORY_PERCENT = 1
RESERVED_MEMORY_MIB = 1_024
"""Memory left to the system: 1 GiB and 1 % of the machine's, for kubelet and containerd on a large one hold more pods' logs and images."""
STATUS_IMAGES = 20
"""Images listed in a node's status, of which 7,500 are in every API server's memory; a training node runs a handful."""


def secrets_of(cluster: ClusterPlan) -> Secrets:
    """Secrets of a node: the authority that it trusts, and the token with which it asks for its first certificate."""
    server = {"server": cluster.api_servers.url, "certificate-authority": f"{KUBERNETES}/pki/{AUTHORITY}.pem"}
    bootstrap = kubeconfig.document(server, {"token": "{{bootstrap-token}}"})
    return Secrets(
        vault="node",
        directory=f"{KUBERNETES}/pki",
        keep=(AUTHORITY,),
        compose={BOOTSTRAP_KUBECONFIG: tuple(bootstrap.splitlines())},
        only_composed=("bootstrap-token",),
    )


def image_label(pin: str) -> str:
    """An image pin as a label's value, in which @ may not stand: name_version."""
    return pin.replace("@", "_")


def labels(region: RegionPlan, pool: PoolPlan, scale_set: ScaleSetPlan) -> dict[str, str]:
    """Labels that a node registers with; the InfiniBand domain is its scale set, where the pool has InfiniBand."""
    location, zone = region.spec.location, pool.spec.zone.value
    domain = {"gpufleet.io/ib-domain": scale_set.infiniband_domain} if scale_set.infiniband_domain else {}
    return {
        **pool.labels,
        "topology.kubernetes.io/region": location,
        "topology.kubernetes.io/zone": f"{location}-{zone}",
        "node.kubernetes.io/instance-type": pool.size.name,
        "gpufleet.io/image": image_label(pool.image.pin),
        **domain,
    }


def flags(region: RegionPlan, pool: PoolPlan, scale_set: ScaleSetPlan) -> dict[str, str | tuple[str, ...]]:
    """Flags of the kubelet: what differs between machines, from what gpufleet-join and gpufleet-node write, and what a file cannot say."""
    return {
        "config": CONFIGURATION,
        "kubeconfig": KUBECONFIG,
        "bootstrap-kubeconfig": BOOTSTRAP_KUBECONFIG,
        "cert-dir": "/var/lib/kubelet/pki",
        # Over maxPods of the file, where the machine has fewer addresses than were planned.
        "max-pods": "${GPUFLEET_MAX_PODS}",
        "node-ip": "${GPUFLEET_NODE_IP}",
        "provider-id": "${GPUFLEET_PROVIDER_ID}",
        "node-labels": tuple(f"{name}={value}" for name, value in labels(region, pool, scale_set).items()),
    }


def _taint(text: str) -> dict[str, str]:
    """A taint of the plan, KEY=VALUE:EFFECT, as the kubelet's configuration has it."""
    key, _, rest = text.partition("=")
    value, _, effect = rest.rpartition(":")
    return {"key": key, "value": value, "effect": effect}


def _reserved(size: VmSize) -> dict[str, object]:
    """What of the machine is the system's."""
    memory = f"{RESERVED_MEMORY_MIB + size.memory_gib * 1_024 * RESERVED_MEMORY_PERCENT // 100}Mi"
    cpus = next((cpus for vcpus, cpus in RESERVED_CPUS if size.vcpus >= vcpus), None)
    if cpus is None:
        return {"systemReserved": {"cpu": "250m", "memory": memory}}
    return {"systemReserved": {"memory": memory}, "reservedSystemCPUs": cpus}


def _placement(size: VmSize) -> dict[str, object]:
    """Where on the machine a container runs: CPUs of its own, on GPU machines beside its GPUs, or the pod is refused."""
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
    """Who may call the kubelet, and how."""
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
    """What a node costs the API servers."""
    return {
        # Looked at on the node; a change is reported at once, whatever the next two say.
        "nodeStatusUpdateFrequency": "10s",
        "nodeStatusReportFrequency": f"{REPORT_SECONDS}s",
        "nodeLeaseDurationSeconds": LEASE_SECONDS,
        "nodeStatusMaxImages": STATUS_IMAGES,
        # A broken node writes events without end: five a second at most.
        "eventRecordQPS": 5,
        "eventBurst": 25,
    }


def _images() -> dict[str, object]:
    """One large image must not hold up all others: https://openai.com/index/scaling-kubernetes-to-2500-nodes/"""
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
    """KubeletConfiguration of a pool's nodes, YAML: https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/"""
    return _configuration(pool.size, pool.max_pods, pool.taints, cluster.network.dns_service_address)


@functools.cache
def _configuration(size: VmSize, pods: int, taints: tuple[str, ...], dns_service: str) -> str:
    """Written once for all of a pool's scale sets: writing YAML takes longer than the rest of a boot document."""
    document = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "port": KUBELET_PORT,
        "containerRuntimeEndpoint": CONTAINERD_SOCKET,
        "cgroupDriver": "systemd",
        "clusterDomain": CLUSTER_DOMAIN,
        # The second serves while the node's own cache restarts.
        "clusterDNS": [NODE_LOCAL_DNS_ADDRESS, dns_service],
        # systemd-resolved's own file names a resolver on loopback, which a pod would take for itself.
        "resolvConf": "/run/systemd/resolve/resolv.conf",
        # No pod more than there are addresses for: it would be scheduled here and hang without one.
        "maxPods": pods,
        "registerWithTaints": [_taint(text) for text in taints],
        # For a shutdown that nobody announced; a terminate notification gives pods 15 minutes before. Pods of the system go last.
        "shutdownGracePeriod": "150s",
        "shutdownGracePeriodCriticalPods": "30s",
        "failSwapOn": True,
        **_placement(size),
        **_security(),
        **_scale(),
        **_images(),
    }
    return yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, width=200)
