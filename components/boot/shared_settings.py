"""How often nodes say that they live, and after how long a silence they count as lost; the same in every cluster."""

from __future__ import annotations

LEASE_SECONDS = 80
"""A node renews its lease every quarter of this. Kubernetes' default of 40 s would be 750 writes a second at 7,500 nodes instead of 375.

Not by the cluster's size: a cluster that grew past a bound would change the boot files of every machine it has, and kubelets that still
renew slowly would meet a controller manager that already counts them as lost.
https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager/"""
REPORT_SECONDS = 900
"""An unchanged status is reported so often: 8 a second at 7,500 nodes, instead of 25 with the default of 300 s."""
GRACE_SECONDS = 100
"""Five renewals may be missed, as by default. A dead node is found 50 s later than by default; a job that spans nodes notices by itself."""


TLS_MIN_VERSION = "VersionTLS12"
"""Azure's load balancer probes with TLS 1.2 at most: https://learn.microsoft.com/azure/load-balancer/load-balancer-custom-probe-overview"""
TLS_CIPHER_SUITES = (
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
)
"""Suites of TLS 1.2 with forward secrecy and authenticated encryption; those of TLS 1.3 are always on."""


FEATURE_GATES = ("GenericWorkload=true", "GangScheduling=true")
"""On API server, controller manager and scheduler alike: one without the others leaves gangs unscheduled or their objects undeletable.
WorkloadAwarePreemption stays off: with it a gang never ran that had to preempt placeholder pods on 50 nodes or more."""
RUNTIME_CONFIG = ("scheduling.k8s.io/v1alpha2=true",)
"""API group of the gangs, which the gates need."""
