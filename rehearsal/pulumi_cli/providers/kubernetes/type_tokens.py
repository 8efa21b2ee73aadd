"""Kubernetes kinds by type token, their properties that are known without a server, and unsupported tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from components.errors import GpufleetError

PACKAGE = "kubernetes"
CORE_GROUP = "core"
OVERLAYS: Mapping[str, str] = {
    "helm.sh": "a Helm chart or release",
    "kustomize": "a Kustomize directory",
    "yaml": "a YAML file or group",
}
"""Groups of tokens that are programs of the real provider instead of kinds:
https://www.pulumi.com/registry/packages/kubernetes/api-docs/"""
CLUSTER_SCOPED: Mapping[str, frozenset[str]] = {
    "": frozenset({"ComponentStatus", "Namespace", "Node", "PersistentVolume"}),
    "admissionregistration.k8s.io": frozenset(
        {
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        }
    ),
    "apiextensions.k8s.io": frozenset({"CustomResourceDefinition"}),
    "apiregistration.k8s.io": frozenset({"APIService"}),
    "authentication.k8s.io": frozenset({"SelfSubjectReview", "TokenReview"}),
    "authorization.k8s.io": frozenset({"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"}),
    "certificates.k8s.io": frozenset({"CertificateSigningRequest", "ClusterTrustBundle"}),
    "flowcontrol.apiserver.k8s.io": frozenset({"FlowSchema", "PriorityLevelConfiguration"}),
    "networking.k8s.io": frozenset({"IPAddress", "IngressClass", "ServiceCIDR"}),
    "node.k8s.io": frozenset({"RuntimeClass"}),
    "rbac.authorization.k8s.io": frozenset({"ClusterRole", "ClusterRoleBinding"}),
    "resource.k8s.io": frozenset({"DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest", "ResourceSlice"}),
    "scheduling.k8s.io": frozenset({"PriorityClass"}),
    "storage.k8s.io": frozenset({"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"}),
    "storagemigration.k8s.io": frozenset({"StorageVersionMigration"}),
}
"""Kinds without a namespace, by API group: https://kubernetes.io/docs/reference/kubernetes-api/"""
BUILT_IN = frozenset(
    {
        *CLUSTER_SCOPED,
        "apps",
        "autoscaling",
        "batch",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "policy",
    }
)
"""API groups of Kubernetes itself."""
TOP_LEVEL: Mapping[str, frozenset[str]] = {
    "Binding": frozenset({"target"}),
    "ClusterRole": frozenset({"aggregationRule", "rules"}),
    "ClusterRoleBinding": frozenset({"roleRef", "subjects"}),
    "ConfigMap": frozenset({"binaryData", "data", "immutable"}),
    "Endpoints": frozenset({"subsets"}),
    "EndpointSlice": frozenset({"addressType", "endpoints", "ports"}),
    "LimitRange": frozenset({"spec"}),
    "PodTemplate": frozenset({"template"}),
    "PriorityClass": frozenset({"description", "globalDefault", "preemptionPolicy", "value"}),
    "Role": frozenset({"rules"}),
    "RoleBinding": frozenset({"roleRef", "subjects"}),
    "RuntimeClass": frozenset({"handler", "overhead", "scheduling"}),
    "Secret": frozenset({"data", "immutable", "stringData", "type"}),
    "ServiceAccount": frozenset({"automountServiceAccountToken", "imagePullSecrets", "secrets"}),
    "StorageClass": frozenset(
        {
            "allowVolumeExpansion",
            "allowedTopologies",
            "mountOptions",
            "parameters",
            "provisioner",
            "reclaimPolicy",
            "volumeBindingMode",
        }
    ),
    "VolumeAttributesClass": frozenset({"driverName", "parameters"}),
}
"""Fields besides apiVersion, kind and metadata, for kinds with fields other than spec and status."""
UNCHECKED = frozenset(
    {
        "CSIStorageCapacity",
        "ComponentStatus",
        "ControllerRevision",
        "Event",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    }
)
"""Kinds of Kubernetes whose fields only the API server checks."""


class UnsupportedTypeError(GpufleetError):
    """A type token that is not a kind, or not supported: token, reason, remedy."""

    def __init__(self, token: str, reason: str, remedy: str) -> None:
        self.token, self.reason, self.remedy = token, reason, remedy
        super().__init__(f"{token}: {reason}; {remedy}")


@dataclass(frozen=True)
class Kind:
    """A kind with its API version, as in objects."""

    api_version: str
    kind: str

    @property
    def group(self) -> str:
        """Return the API group, "" for core."""
        return self.api_version.rpartition("/")[0]

    @property
    def built_in(self) -> bool:
        """Return whether Kubernetes itself has the kind."""
        return self.group in BUILT_IN

    @property
    def namespaced(self) -> bool:
        """Return whether its objects are in namespaces, as known without a server; for a custom kind only the server knows."""
        return self.kind not in CLUSTER_SCOPED.get(self.group, frozenset())

    @property
    def fields(self) -> frozenset[str] | None:
        """Return the fields besides apiVersion, kind and metadata; None where only the API server knows them."""
        if not self.built_in or self.kind in UNCHECKED:
            return None
        return TOP_LEVEL.get(self.kind, frozenset({"spec", "status"}))

    def __str__(self) -> str:
        return f"{self.kind} of {self.api_version}"


def kind_of(token: str) -> Kind:
    """Return the kind of a type token such as kubernetes:core/v1:Service; UnsupportedTypeError."""
    package, _, rest = token.partition(":")
    module, _, kind = rest.partition(":")
    group, _, version = module.partition("/")
    if package != PACKAGE or not kind:
        raise UnsupportedTypeError(token, "is not a type of this provider", "give a type such as kubernetes:core/v1:Service")
    if group in OVERLAYS:
        raise UnsupportedTypeError(token, f"{OVERLAYS[group]} is not supported in a rehearsal", "register the objects that it creates")
    if not version or "/" in version:
        raise UnsupportedTypeError(token, "has no API group with a version", "give a type such as kubernetes:apps/v1:Deployment")
    if kind.endswith("List"):
        raise UnsupportedTypeError(token, "a list is not an object", "register the objects in it")
    if kind.endswith("Patch"):
        raise UnsupportedTypeError(
            token, "a patch of another client's object is not supported in a rehearsal", "register the object itself"
        )
    return Kind(version if group == CORE_GROUP else f"{group}/{version}", kind)
