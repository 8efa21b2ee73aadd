"""Settings that several Kubernetes programs share, the same in every cluster: node heartbeats, TLS and features."""

from __future__ import annotations

LEASE_SECONDS = 80
"""Duration of a node's lease, which is renewed four times in it. At 7,500 nodes, the default of 40 s means 750 writes a second, not 375.

It does not depend on the cluster's size: growth past a step would change the boot files of all machines, and kubelets that still
renew slowly would count as lost for the controller manager.
https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager/"""
REPORT_SECONDS = 900
"""Seconds between two reports of an unchanged status: 8 per second at 7,500 nodes, instead of 25 with the default of 300 s."""
GRACE_SECONDS = 100
"""Five renewals may be missed, as by default. A dead node is detected 50 s later than by default; a multi-node job fails earlier."""
TLS_MIN_VERSION = "VersionTLS12"
"""The probe of Azure's load balancer supports TLS 1.2 at most: https://learn.microsoft.com/azure/load-balancer/load-balancer-custom-probe-overview"""
TLS_CIPHER_SUITES = (
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
)
"""Suites of TLS 1.2 with forward secrecy and authenticated encryption; those of TLS 1.3 are always enabled."""
FEATURE_GATES = ("GenericWorkload=true", "GangScheduling=true")
"""Features for gang scheduling (all pods or none), on API server, controller manager and scheduler: if one is missing, gangs are not
scheduled or their objects cannot be deleted. WorkloadAwarePreemption is off: with it, a gang that had to preempt placeholder pods
on 50 nodes or more never ran."""
RUNTIME_CONFIG = ("scheduling.k8s.io/v1alpha2=true",)
"""API group of gangs, which the features need."""
