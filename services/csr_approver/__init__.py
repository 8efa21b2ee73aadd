"""Approver of the certificate signing requests of kubelets."""
