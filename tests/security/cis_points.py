"""The control plane held to the CIS Kubernetes Benchmark 2.0: one row for each of its points, with the check that says so."""

from __future__ import annotations

from collections.abc import Iterator

import cis_policies as policies
from cis_api_server import API_SERVER
from cis_point import DEVIATES, MET, NOT_APPLICABLE, Point
from cis_rendered import (
    API,
    ETCD,
    KUBERNETES,
    MANAGER,
    SCHEDULER,
    fetched_by_root,
    fetched_private,
    flag,
    keys,
    members_flag,
    members_keys,
    members_lack,
    private,
    roots,
    unit_steady,
)


def _pod_files() -> Iterator[Point]:
    """Yield points 1.1.1 to 1.1.8: there are no static pods, so their units are checked instead."""
    why = "systemd runs it as a unit, not as a pod. Only root may write the unit, and it refers to key files without containing keys"
    for number, program in enumerate((API, MANAGER, SCHEDULER, ETCD)):
        for offset, what in enumerate(("mode", "owner"), start=1):
            yield Point(f"1.1.{2 * number + offset}", f"pod file of {program}: {what}", NOT_APPLICABLE, why, (unit_steady(program),))


def _kubeconfigs() -> Iterator[Point]:
    """Yield points 1.1.13 to 1.1.18: the kubeconfigs of the programs and of an administrator on the machine."""
    for number, name in ((13, "admin"), (15, "scheduler"), (17, "controller-manager")):
        path = f"{KUBERNETES}/{name}.kubeconfig"
        yield Point(f"1.1.{number}", f"kubeconfig of {name}: mode", MET, f"`{path}` 0600", (private(path),))
        yield Point(f"1.1.{number + 1}", f"kubeconfig of {name}: owner", MET, f"`{path}` root:root", (roots(path),))


NO_CNI = "API servers' and etcd's machines run no kubelet and no pods"
CONTROL_PLANE_FILES = (
    *_pod_files(),
    Point("1.1.9", "CNI files: mode", NOT_APPLICABLE, NO_CNI),
    Point("1.1.10", "CNI files: owner", NOT_APPLICABLE, NO_CNI),
    Point(
        "1.1.11", "etcd's data directory: mode", MET, "etcd makes `/var/lib/etcd/data` 0700", live="test_data_of_etcd_is_its_owners_alone"
    ),
    Point(
        "1.1.12",
        "etcd's data directory: owner",
        DEVIATES,
        "root:root. etcd is the only program of its machine. It runs as root to read root's keys, without any capability, "
        "on a read-only system. A separate user would protect its data from no other program",
        (policies.members_run_confined,),
    ),
    *_kubeconfigs(),
    Point("1.1.19", "PKI: owner", MET, "`gpufleet-secrets.service` writes `/etc/kubernetes/pki` as root", (fetched_by_root,)),
    Point("1.1.20", "PKI: mode of certificates", MET, "0600 in a folder 0700", (fetched_private,)),
    Point("1.1.21", "PKI: mode of keys", MET, "0600 in a folder 0700", (fetched_private,)),
)
PROGRAMS = (
    Point(
        "1.3.1",
        "finished pods are deleted",
        MET,
        "`--terminated-pod-gc-threshold=12500`",
        (flag(MANAGER, terminated_pod_gc_threshold="12500"),),
    ),
    Point(
        "1.3.2",
        "no profiling",
        MET,
        "`--profiling=false`",
        (flag(MANAGER, profiling="false"),),
        "test_nobody_profiles_the_programs_beside_it",
    ),
    Point(
        "1.3.3",
        "a service account for each controller",
        MET,
        "`--use-service-account-credentials`",
        (flag(MANAGER, use_service_account_credentials="true"),),
    ),
    Point(
        "1.3.4",
        "key of service accounts",
        MET,
        "`--service-account-private-key-file`",
        (keys(MANAGER, "service-account-private-key-file"),),
    ),
    Point("1.3.5", "authority given to pods", MET, "`--root-ca-file`", (keys(MANAGER, "root-ca-file"),)),
    Point("1.3.6", "kubelets' serving certificates rotate", MET, "on by default, not disabled", (policies.kubelets_ask_for_certificates,)),
    Point("1.3.7", "only on loopback", MET, "`--bind-address`", (flag(MANAGER, bind_address="127.0.0.1"),)),
    Point(
        "1.4.1",
        "no profiling",
        MET,
        "`enableProfiling: false` in `scheduler.yaml`",
        (policies.scheduler_profiling_is_off,),
        "test_nobody_profiles_the_programs_beside_it",
    ),
    Point("1.4.2", "only on loopback", MET, "`--bind-address`", (flag(SCHEDULER, bind_address="127.0.0.1"),)),
)
ETCD_MEMBERS = (
    Point("2.1", "serving certificate", MET, "`--cert-file`, `--key-file`", (members_keys("cert-file", "key-file"),)),
    Point(
        "2.2",
        "clients are verified",
        MET,
        "`--client-cert-auth`. `--listen-client-http-urls`, without TLS and only on loopback, returns version and health, but no key",
        (members_flag(client_cert_auth="true", listen_client_http_urls="http://127.0.0.1:2382"),),
        "test_etcd_talks_to_nobody_without_a_certificate",
    ),
    Point("2.3", "no self-made certificates", MET, "`--auto-tls` not given", (members_lack("auto-tls"),)),
    Point("2.4", "peers' certificate", MET, "`--peer-cert-file`, `--peer-key-file`", (members_keys("peer-cert-file", "peer-key-file"),)),
    Point("2.5", "peers are verified", MET, "`--peer-client-cert-auth`", (members_flag(peer_client_cert_auth="true"),)),
    Point("2.6", "no self-made certificates of peers", MET, "`--peer-auto-tls` not given", (members_lack("peer-auto-tls"),)),
    Point(
        "2.7",
        "an authority of its own",
        MET,
        "one for each etcd cluster; none of them is the Kubernetes cluster's",
        (policies.rings_have_authorities_of_their_own,),
        "test_the_clusters_own_certificates_open_no_etcd",
    ),
)
CONFIGURATION = (
    Point(
        "3.1.1",
        "people have no client certificates",
        DEVIATES,
        "people sign in with Entra ID. The only exception is the break-glass certificate, for an outage of Entra ID. "
        "It is stored in the control vault, on API servers' machines and in the stack's encrypted outputs",
        (policies.people_by_tokens,),
    ),
    Point(
        "3.1.2",
        "people have no service accounts' tokens",
        MET,
        "no permanent token is created; tokens of gpufleet's accounts are mounted only on request",
        (policies.accounts_have_no_lasting_tokens,),
    ),
    Point(
        "3.1.3",
        "people have no bootstrap tokens",
        MET,
        "the tokens may request a node's certificate, and nothing else; they live for 6 hours",
        (policies.bootstrap_tokens_join_nodes_alone,),
    ),
    Point("3.2.1", "an audit policy", MET, "`--audit-policy-file`", (policies.policy_is_given,), "test_deeds_are_written_down"),
    Point(
        "3.2.2",
        "the policy covers what matters",
        MET,
        "changes, with their request; secrets, config maps, tokens and token reviews, without a body; exec, port-forward and proxies",
        (policies.credentials_never_stand_in_the_log, policies.what_matters_is_written_down),
        "test_deeds_are_written_down",
    ),
)
SECTIONS = (
    ("1.1 Files of the control plane's machines", CONTROL_PLANE_FILES),
    ("1.2 API server", API_SERVER),
    ("1.3 Controller manager and 1.4 scheduler", PROGRAMS),
    ("2 etcd", ETCD_MEMBERS),
    ("3.1 Authentication and authorization, 3.2 logging", CONFIGURATION),
)
POINTS = tuple(point for _, points in SECTIONS for point in points)
NUMBERS = (
    *(f"1.1.{number}" for number in range(1, 22)),
    *(f"1.2.{number}" for number in range(1, 31)),
    *(f"1.3.{number}" for number in range(1, 8)),
    *(f"1.4.{number}" for number in range(1, 3)),
    *(f"2.{number}" for number in range(1, 8)),
    *(f"3.1.{number}" for number in range(1, 4)),
    *(f"3.2.{number}" for number in range(1, 3)),
)
"""Numbers of the benchmark's sections 1 to 3, as
https://github.com/aquasecurity/kube-bench/tree/8ff7c8502cb8e427e9a8511005f328ba6ae2fe85/cfg/cis-2.0 has them."""


def tables() -> str:
    """The document's tables, in Markdown."""
    parts = []
    for title, points in SECTIONS:
        rows = [f"| {one.number} | {one.what} | {one.state} | {one.how} | {one.test} |" for one in points]
        parts.append(
            "\n".join((f"### {title}", "", "| number | what | state | how, or why not | held by |", "|---|---|---|---|---|", *rows))
        )
    return "\n\n".join(parts)
