"""Which TLS the cluster's servers speak."""

from __future__ import annotations

MIN_VERSION = "VersionTLS12"
"""Azure's load balancer probes with TLS 1.2 at most: https://learn.microsoft.com/azure/load-balancer/load-balancer-custom-probe-overview"""
CIPHER_SUITES = (
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
)
"""Suites of TLS 1.2 with forward secrecy and authenticated encryption; those of TLS 1.3 are always on."""
