"""Which Kubernetes features beyond the defaults are on: scheduling all pods of a gang at once, or none."""

from __future__ import annotations

GATES = ("GenericWorkload=true", "GangScheduling=true")
"""On API server, controller manager and scheduler alike: one without the others leaves gangs unscheduled or their objects undeletable.
WorkloadAwarePreemption stays off: with it a gang never ran that had to preempt placeholder pods on 50 nodes or more."""
RUNTIME_CONFIG = ("scheduling.k8s.io/v1alpha2=true",)
"""API group of the gangs, which the gates need."""
