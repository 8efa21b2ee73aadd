"""Flags and configuration fields of the control plane's programs that contain paths of their machine or addresses of the plan."""

from __future__ import annotations

from collections.abc import Mapping

PATH, ADDRESSES, IDENTIFIER, VAULT = "path", "addresses", "identifier", "vault"
"""Kinds of values: a path, a text in which every URL is an address of the plan, a name that only looks like an address, a vault's URL."""


def _all(kind: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), kind)


ETCD = {
    **_all(PATH, "data-dir cert-file key-file trusted-ca-file peer-cert-file peer-key-file peer-trusted-ca-file"),
    **_all(ADDRESSES, "listen-client-urls listen-client-http-urls advertise-client-urls listen-peer-urls initial-advertise-peer-urls"),
    **_all(ADDRESSES, "listen-metrics-urls"),
}
ETCD_GUARD = {**_all(PATH, "authority certificate key"), **_all(ADDRESSES, "own"), "": ADDRESSES}
KUBE_APISERVER = {
    **_all(
        PATH,
        "tls-cert-file tls-private-key-file etcd-cafile etcd-certfile etcd-keyfile encryption-provider-config client-ca-file "
        "authentication-config service-account-key-file service-account-signing-key-file requestheader-client-ca-file "
        "proxy-client-cert-file proxy-client-key-file kubelet-certificate-authority kubelet-client-certificate kubelet-client-key "
        "audit-policy-file audit-log-path",
    ),
    **_all(ADDRESSES, "etcd-servers etcd-servers-overrides"),
    # Names in tokens; no client connects to them.
    **_all(IDENTIFIER, "service-account-issuer external-hostname"),
}
KUBE_CONTROLLER_MANAGER = _all(
    PATH,
    "kubeconfig authentication-kubeconfig authorization-kubeconfig root-ca-file service-account-private-key-file flex-volume-plugin-dir "
    "cluster-signing-kubelet-client-cert-file cluster-signing-kubelet-client-key-file "
    "cluster-signing-kubelet-serving-cert-file cluster-signing-kubelet-serving-key-file",
)
KUBE_SCHEDULER = _all(PATH, "config authentication-kubeconfig authorization-kubeconfig")
CSR_APPROVER = {**_all(PATH, "kubeconfig attestation-roots"), **_all(VAULT, "node-vault")}
FLAGS: Mapping[str, Mapping[str, str]] = {
    "etcd": ETCD,
    "gpufleet-etcd-guard": ETCD_GUARD,
    "gpufleet-fetch-secrets": {},
    "gpufleet-etcd-snapshot": {},
    "kube-apiserver": KUBE_APISERVER,
    "kube-controller-manager": KUBE_CONTROLLER_MANAGER,
    "kube-scheduler": KUBE_SCHEDULER,
    "gpufleet-csr-approver": CSR_APPROVER,
}
"""Flags by program; the empty flag means positional arguments. A flag that is not listed contains neither path nor address."""

ENVIRONMENT: Mapping[str, str] = {"ETCD_INITIAL_CLUSTER": ADDRESSES, "ETCD_INITIAL_ADVERTISE_PEER_URLS": ADDRESSES}
"""Environment variables that contain addresses."""

KUBECONFIG = {
    "clusters.*.cluster.server": ADDRESSES,
    "clusters.*.cluster.certificate-authority": PATH,
    # The name in the server's certificate, independent of the address.
    "clusters.*.cluster.tls-server-name": IDENTIFIER,
    "users.*.user.client-certificate": PATH,
    "users.*.user.client-key": PATH,
    "users.*.user.tokenFile": PATH,
}
SCHEDULER = {"clientConnection.kubeconfig": PATH}
SNAPSHOT = _all(PATH, "authority certificate key directory") | {"endpoint": ADDRESSES}
FILES: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("/etc/kubernetes/*.kubeconfig", KUBECONFIG),
    ("/etc/kubernetes/scheduler.yaml", SCHEDULER),
    ("/etc/gpufleet/etcd-snapshot.json", SNAPSHOT),
    # Issuers and audiences are Entra's; the policy's values are kinds of requests.
    ("/etc/kubernetes/authentication.yaml", {}),
    ("/etc/kubernetes/audit.yaml", {}),
)
"""Configuration files in YAML or JSON by path, and their fields; * is any element of a list."""
