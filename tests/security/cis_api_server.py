"""Points of the benchmark's section 1.2, the API server's."""

from __future__ import annotations

import cis_policies as policies
from cis_point import DEVIATES, MET, Point
from cis_rendered import API, absent, at_least, flag, holds, keys, lacks

API_SERVER = (
    Point(
        "1.2.1",
        "no anonymous requests",
        DEVIATES,
        "`authentication.yaml` allows them only on /livez, /readyz and /healthz, which Azure's load balancer requests without credentials; "
        "all other requests receive 401",
        (policies.anonymous_on_health_alone,),
        "test_nobody_without_a_name_sees_more_than_health",
    ),
    Point("1.2.2", "no file of static tokens", MET, "flag not given", (absent(API, "token-auth-file"),)),
    Point(
        "1.2.3",
        "services without external addresses",
        MET,
        "`--enable-admission-plugins`",
        (holds(API, "enable-admission-plugins", "DenyServiceExternalIPs"),),
        "test_a_service_gets_no_external_address",
    ),
    Point(
        "1.2.4",
        "client certificate for kubelets",
        MET,
        "`--kubelet-client-certificate`, `--kubelet-client-key`",
        (keys(API, "kubelet-client-certificate", "kubelet-client-key"),),
    ),
    Point("1.2.5", "kubelets are verified", MET, "`--kubelet-certificate-authority`", (keys(API, "kubelet-certificate-authority"),)),
    Point("1.2.6", "not everything is allowed", MET, "`--authorization-mode`", (lacks(API, "authorization-mode", "AlwaysAllow"),)),
    Point("1.2.7", "Node authorizer", MET, "`--authorization-mode`", (holds(API, "authorization-mode", "Node"),)),
    Point("1.2.8", "RBAC authorizer", MET, "`--authorization-mode`", (holds(API, "authorization-mode", "RBAC"),)),
    Point(
        "1.2.9",
        "EventRateLimit admission",
        DEVIATES,
        "an alpha plugin. Other settings give the same protection. Events have a separate etcd cluster and live for an hour. "
        "A kubelet sends at most five per second (`eventRecordQPS`). Priority and fairness gives every flow its share",
        (flag(API, event_ttl="1h"),),
    ),
    Point("1.2.10", "no AlwaysAdmit admission", MET, "not in the list", (lacks(API, "enable-admission-plugins", "AlwaysAdmit"),)),
    Point(
        "1.2.11",
        "AlwaysPullImages admission",
        DEVIATES,
        "every start of a pod would need the registry, even if the machine's image contains the pod's image. An outage of the registry "
        "would end jobs on all nodes. Kubernetes 1.35 and later check on the node that a pod may use an image that another pod's "
        "credentials pulled (https://www.kubernetes.dev/resources/keps/2535/)",
        (lacks(API, "enable-admission-plugins", "AlwaysPullImages"),),
    ),
    *(
        Point(number, f"{plugin} admission", MET, "on by default, not disabled", (lacks(API, "disable-admission-plugins", plugin),))
        for number, plugin in (("1.2.12", "ServiceAccount"), ("1.2.13", "NamespaceLifecycle"))
    ),
    Point("1.2.14", "NodeRestriction admission", MET, "in the list", (holds(API, "enable-admission-plugins", "NodeRestriction"),)),
    Point("1.2.15", "no profiling", MET, "`--profiling=false`", (flag(API, profiling="false"),), "test_nobody_profiles_the_api_server"),
    Point(
        "1.2.16",
        "audit log",
        MET,
        "`--audit-log-path`",
        (flag(API, audit_log_path="/var/log/kubernetes/audit.log"),),
        "test_deeds_are_written_down",
    ),
    Point(
        "1.2.17",
        "audit log: 30 days",
        MET,
        "`--audit-log-maxage=30`. Where 20 files of 200 MB hold less than 30 days, ship the files elsewhere: nothing here does",
        (at_least(API, "audit-log-maxage", 30),),
    ),
    Point("1.2.18", "audit log: 10 files", MET, "`--audit-log-maxbackup=20`", (at_least(API, "audit-log-maxbackup", 10),)),
    Point("1.2.19", "audit log: 100 MB a file", MET, "`--audit-log-maxsize=200`", (at_least(API, "audit-log-maxsize", 100),)),
    Point("1.2.20", "request timeout", MET, "`--request-timeout=60s`", (flag(API, request_timeout="60s"),)),
    Point(
        "1.2.21",
        "tokens of deleted service accounts end",
        MET,
        "on by default, not disabled",
        (absent(API, "service-account-lookup"),),
        "test_a_deleted_accounts_token_ends",
    ),
    Point(
        "1.2.22", "service accounts have a key of their own", MET, "`--service-account-key-file`", (keys(API, "service-account-key-file"),)
    ),
    Point(
        "1.2.23", "client certificate for etcd", MET, "`--etcd-certfile`, `--etcd-keyfile`", (keys(API, "etcd-certfile", "etcd-keyfile"),)
    ),
    Point(
        "1.2.24",
        "serving certificate",
        MET,
        "`--tls-cert-file`, `--tls-private-key-file`; TLS 1.2 or 1.3",
        (keys(API, "tls-cert-file", "tls-private-key-file"),),
        "test_old_tls_is_refused",
    ),
    Point("1.2.25", "authority of clients", MET, "`--client-ca-file`", (keys(API, "client-ca-file"),)),
    Point("1.2.26", "etcd is verified", MET, "`--etcd-cafile`", (keys(API, "etcd-cafile"),)),
    Point(
        "1.2.27",
        "encryption at rest",
        MET,
        "`--encryption-provider-config`",
        (keys(API, "encryption-provider-config"),),
        "test_a_secret_lies_encrypted_in_etcd",
    ),
    Point(
        "1.2.28",
        "encryption provider",
        MET,
        "secretbox writes; identity only reads what is older",
        (policies.secrets_are_encrypted,),
        "test_a_secret_lies_encrypted_in_etcd",
    ),
    Point(
        "1.2.29",
        "strong ciphers",
        MET,
        "`--tls-cipher-suites`: four with forward secrecy",
        (policies.suites_are_strong,),
        "test_only_strong_suites_are_offered",
    ),
    Point(
        "1.2.30",
        "service accounts' tokens are short",
        MET,
        "`--service-account-extend-token-expiration=false`",
        (flag(API, service_account_extend_token_expiration="false"),),  # noqa: S106 a flag
    ),
)
