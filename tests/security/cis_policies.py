"""Checks of configurations: authentication, encryption and audit policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cis_rendered import API, ETCD, KUBERNETES, SCHEDULER, Rendered, flags_of

from components.boot.control_keys import ENCRYPTION, secrets_of
from components.boot.etcd_flags import CLIENT_AUTHORITIES
from components.boot.etcd_flags import secrets_of as member_secrets
from components.pki_certificates import CLIENTS
from components.plan.access import BOOTSTRAP_GROUP

STRONG = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
}
"""Those of the benchmark's suites that TLS 1.2 has with AES; the rest of its list are ChaCha20's, and TLS 1.3's, which are always on."""
HEALTH = ["/livez", "/readyz", "/healthz"]


def anonymous_on_health_alone(one: Rendered) -> None:
    assert "anonymous-auth" not in one.flags(API), "the configuration says it, and both together are refused"
    said = one.configuration(one.flags(API)["authentication-config"])["anonymous"]
    assert said == {"enabled": True, "conditions": [{"path": path} for path in HEALTH]}


def people_by_tokens(one: Rendered) -> None:
    (jwt,) = one.configuration(one.flags(API)["authentication-config"])["jwt"]
    assert jwt["issuer"]["url"].startswith("https://login.microsoftonline.com/")
    assert {name for name, _, _, groups in CLIENTS if groups} == {"admin"}, "break-glass alone is in a group, the rest are programs' users"


def accounts_have_no_lasting_tokens(one: Rendered) -> None:
    kinds = [(item["kind"], item.get("type")) for item in one.objects]
    assert ("Secret", "kubernetes.io/service-account-token") not in kinds
    accounts = [item for item in one.objects if item["kind"] == "ServiceAccount"]
    assert accounts
    assert all(item["automountServiceAccountToken"] is False for item in accounts)


def bootstrap_tokens_join_nodes_alone(one: Rendered) -> None:
    bound = {
        item["roleRef"]["name"]
        for item in one.objects
        if item["kind"].endswith("RoleBinding")
        for subject in item.get("subjects", ())
        if subject["name"].startswith(BOOTSTRAP_GROUP.partition("gpufleet")[0])
    }
    assert bound == {"system:node-bootstrapper"}


def suites_are_strong(one: Rendered) -> None:
    for program in (API, "kube-controller-manager", SCHEDULER):
        assert set(one.flags(program)["tls-cipher-suites"].split(",")) <= STRONG
        assert one.flags(program)["tls-min-version"] == "VersionTLS12"


def secrets_are_encrypted(one: Rendered) -> None:
    assert one.flags(API)["encryption-provider-config"] == ENCRYPTION
    text = "\n".join(secrets_of(one.cluster).compose[ENCRYPTION])
    providers = text[text.index("providers:") :]
    assert providers.index("- secretbox:") < providers.index("- identity:")
    assert "resources: [secrets]" in text


def scheduler_profiling_is_off(one: Rendered) -> None:
    assert one.configuration(one.flags(SCHEDULER)["config"])["enableProfiling"] is False


def rings_have_authorities_of_their_own(one: Rendered) -> None:
    for machine in one.members:
        flags = flags_of(one.unit(machine, ETCD), ETCD)
        assert flags["trusted-ca-file"] == CLIENT_AUTHORITIES
        assert flags["peer-trusted-ca-file"] in {"/etc/etcd/etcd-ca-cert.pem", "/etc/etcd/events-ca-cert.pem"}
    for ring in (one.cluster.etcd, one.cluster.events_etcd):
        for member in ring.members:
            (trusted,) = member_secrets(ring, member).compose.values()
            assert set(trusted) <= {"{{etcd-ca-cert}}", "{{events-ca-cert}}"}


def members_run_confined(one: Rendered) -> None:
    for machine in one.members:
        unit = one.unit(machine, ETCD)
        assert unit.settings["Service.CapabilityBoundingSet"] == ()
        assert unit.last("Service.ProtectSystem") == "strict"
        assert unit.last("Service.NoNewPrivileges") == "yes"


def kubelets_ask_for_certificates(one: Rendered) -> None:
    for program in (API, "kube-controller-manager"):
        assert "RotateKubeletServerCertificate=false" not in one.flags(program).get("feature-gates", "")


def level(policy: Mapping[str, Any], **request: str) -> str:
    """Return the level of the audit policy's first matching rule for a request: verb, user, group (of the user), api, resource."""
    for rule in policy["rules"]:
        if "nonResourceURLs" in rule:
            continue
        if "verbs" in rule and request["verb"] not in rule["verbs"]:
            continue
        if "users" in rule and request["user"] not in rule["users"]:
            continue
        if "userGroups" in rule and request["group"] not in rule["userGroups"]:
            continue
        named = [item for item in rule.get("resources", ()) if item["group"] == request["api"]]
        if "resources" in rule and not any("resources" not in item or request["resource"] in item["resources"] for item in named):
            continue
        return str(rule["level"])
    raise AssertionError("no rule matches; Kubernetes would write nothing")


PERSON = {"user": "entra:somebody", "group": "system:authenticated"}


def credentials_never_stand_in_the_log(one: Rendered) -> None:
    policy = one.configuration(one.flags(API)["audit-policy-file"])
    for api, resource in (
        ("", "secrets"),
        ("", "configmaps"),
        ("", "serviceaccounts/token"),
        ("authentication.k8s.io", "tokenreviews"),
    ):
        for verb in ("get", "list", "watch", "create", "update", "patch", "delete"):
            assert level(policy, verb=verb, api=api, resource=resource, **PERSON) == "Metadata", (verb, resource)


def what_matters_is_written_down(one: Rendered) -> None:
    policy = one.configuration(one.flags(API)["audit-policy-file"])
    changed = (
        ("", "pods"),
        ("apps", "deployments"),
        ("certificates.k8s.io", "certificatesigningrequests"),
        ("rbac.authorization.k8s.io", "clusterrolebindings"),
    )
    for api, resource in changed:
        for verb in ("create", "update", "patch", "delete"):
            assert level(policy, verb=verb, api=api, resource=resource, **PERSON) == "Request", (verb, resource)
    for resource in ("pods/exec", "pods/portforward", "pods/proxy", "pods/attach", "services/proxy", "nodes/proxy"):
        for verb in ("get", "create"):
            assert level(policy, verb=verb, api="", resource=resource, **PERSON) in ("Metadata", "Request"), (verb, resource)


def policy_is_given(one: Rendered) -> None:
    policy = one.configuration(one.flags(API)["audit-policy-file"])
    assert one.flags(API)["audit-policy-file"].startswith(KUBERNETES)
    assert policy["rules"][-1] == {"level": "Metadata"}, "what no rule names is written down too"
