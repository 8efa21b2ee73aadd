"""Boot files of an API server's machine: API server, controller manager, scheduler and certificate approver."""

from __future__ import annotations

from components.boot import (
    audit,
    authentication,
    kube_apiserver,
    kube_controller_manager,
    kube_scheduler,
    kubeconfig,
    secrets,
    system,
)
from components.boot.control_keys import KUBERNETES, path, secrets_of
from components.boot.machine import BootFile, MachineBoot
from components.boot.unit import CONFINED, Flags, exec_start, unit
from components.plan import naming
from components.plan.model import ApiServersPlan, ClusterPlan, RegionPlan

API_SERVER_UNIT = "kube-apiserver.service"
CSR_APPROVER = "/usr/local/bin/gpufleet-csr-approver"
CSR_APPROVER_KUBECONFIG = f"{KUBERNETES}/csr-approver.kubeconfig"
ADMIN_KUBECONFIG = f"{KUBERNETES}/admin.kubeconfig"
STOP_SECONDS = kube_apiserver.SHUTDOWN_DELAY_SECONDS + kube_apiserver.REQUEST_TIMEOUT_SECONDS + kube_apiserver.WATCH_DRAIN_SECONDS + 15
"""Maximum duration of an orderly shutdown of an API server, plus a margin."""
GARBAGE_PERCENT = 400
"""GOGC: garbage before a collection, in percent of live memory; near GOMEMLIMIT, Go collects more often: https://go.dev/doc/gc-guide.
No other program needs the machine's memory. On two cores, 2,000 nodes joined in 10 % less time with 400 than with the default of 100."""


def _api_server(cluster: ClusterPlan) -> BootFile:
    """Return the unit of the API server; GOMEMLIMIT makes it collect garbage before memory runs out, and GOGC not much earlier."""
    return unit(
        API_SERVER_UNIT,
        f"Kubernetes API server of {cluster.name}",
        ("Wants=network-online.target", "After=network-online.target", *secrets.NEEDS, "StartLimitIntervalSec=0"),
        (
            "Type=notify",
            f"Environment=GOMEMLIMIT={cluster.api_servers.heap_limit_bytes}",
            f"Environment=GOGC={GARBAGE_PERCENT}",
            exec_start(kube_apiserver.PROGRAM, kube_apiserver.flags(cluster)),
            "TimeoutStartSec=infinity",
            f"TimeoutStopSec={STOP_SECONDS}",
            "Restart=always",
            "RestartSec=5",
            # At least one connection per node, and twice as many while connections move between servers.
            "LimitNOFILE=1048576",
            "OOMScoreAdjust=-900",
            *CONFINED,
            "LogsDirectory=kubernetes",
            "LogsDirectoryMode=0700",
        ),
    )


def _beside(name: str, description: str, program: str, flags: Flags) -> BootFile:
    """Return the unit of a program that uses the API server on the same machine."""
    return unit(
        name,
        description,
        (f"Wants={API_SERVER_UNIT}", f"After={API_SERVER_UNIT}", *secrets.NEEDS, "StartLimitIntervalSec=0"),
        (
            "Type=simple",
            exec_start(program, flags),
            "Restart=always",
            "RestartSec=5",
            "LimitNOFILE=65536",
            "OOMScoreAdjust=-500",
            *CONFINED,
        ),
    )


def _kubeconfigs(servers: ApiServersPlan) -> tuple[BootFile, ...]:
    """Return the kubeconfigs of the programs on the API server's machine, and of an administrator for break-glass access."""
    rows = (
        (kube_controller_manager.KUBECONFIG, "controller-manager"),
        (kube_scheduler.KUBECONFIG, "scheduler"),
        (CSR_APPROVER_KUBECONFIG, "csr-approver"),
        (ADMIN_KUBECONFIG, "admin"),
    )
    return tuple(kubeconfig.local(file, servers, path("cluster-ca-cert"), path(f"{name}-cert"), path(f"{name}-key")) for file, name in rows)


def _csr_approver_flags(cluster: ClusterPlan) -> Flags:
    """Return the flags of the certificate approver: location and name prefix of the cluster's scale sets, and the nodes' vault.

    A list of scale sets would change the boot files of all API servers with each set that a pool gains.
    """
    return {
        "kubeconfig": CSR_APPROVER_KUBECONFIG,
        "subscription": cluster.subscription,
        "resource-group": cluster.resource_group,
        "scale-set-prefix": naming.of_cluster(cluster.name, ""),
        "node-vault": cluster.vault("node").uri,
    }


def _units(cluster: ClusterPlan) -> tuple[BootFile, ...]:
    """Return the units of the four services, in the order in which they start."""
    manager, scheduler = kube_controller_manager, kube_scheduler
    return (
        _api_server(cluster),
        _beside("kube-controller-manager.service", "Kubernetes controller manager", manager.PROGRAM, manager.flags(cluster)),
        _beside("kube-scheduler.service", "Kubernetes scheduler", scheduler.PROGRAM, scheduler.flags()),
        _beside("gpufleet-csr-approver.service", "Approver of kubelets' certificates", CSR_APPROVER, _csr_approver_flags(cluster)),
    )


def boot_api_server(region: RegionPlan, cluster: ClusterPlan) -> MachineBoot:
    """Return the files and units of an API server's machine, the same for all API servers of a cluster."""
    units = _units(cluster)
    files = (
        *system.kernel_files(node=False),
        *system.steady_files(),
        *secrets.secret_files(cluster, secrets_of(cluster)),
        BootFile(kube_apiserver.AUTHENTICATION, authentication.configuration(region)),
        BootFile(kube_apiserver.AUDIT_POLICY, audit.policy()),
        BootFile(kube_scheduler.CONFIGURATION, kube_scheduler.configuration()),
        *_kubeconfigs(cluster.api_servers),
        *units,
    )
    names = tuple(item.path.rpartition("/")[2] for item in units)
    return MachineBoot(role="api-server", files=files, enable=(system.KERNEL_UNIT, *secrets.UNITS, *names))
