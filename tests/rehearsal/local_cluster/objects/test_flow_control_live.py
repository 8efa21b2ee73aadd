"""In which priority level a real API server puts each kind of caller, and how many seats each level has there."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from api_client import AUTHENTICATED, Api, Caller, node, service_account

from components.manifests.bootstrap import APPROVER
from components.manifests.flow_control import AGENTS, LEVELS, OPERATORS, SEATS_ANNOTATION, seats
from components.manifests.owned import FLEET_NAMESPACE, SYSTEM_NAMESPACE
from components.manifests.rotation import LEASE
from components.plan.access import BOOTSTRAP_GROUP, CSR_APPROVER_USER, PREFLIGHT_ACCOUNT, ROTATION_ACCOUNT, entra_group
from stacks.load import load_plan

REGION = load_plan("dev")
CLUSTER = REGION.clusters[0]
TEAM = CLUSTER.spec.tenancy.teams[0]
PERSON = Caller("entra:1", (entra_group(str(TEAM.group)), AUTHENTICATED))
OPERATOR = Caller("entra:2", (entra_group(str(REGION.spec.access.operators_group)), entra_group(str(TEAM.group)), AUTHENTICATED))
APPROVES = Caller(CSR_APPROVER_USER, (AUTHENTICATED,))
ROTATION = service_account(FLEET_NAMESPACE, ROTATION_ACCOUNT)
PODS = "/api/v1/namespaces/default/pods/none"
FLOW_CONTROL = "/apis/flowcontrol.apiserver.k8s.io/v1"


class Case(NamedTuple):
    """A request, and the flow schema that should take it."""

    what: str
    by: Caller | None
    path: str
    schema: str


def _lease(namespace: str, name: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"


CASES = (
    Case("the break-glass administrator", None, PODS, "exempt"),
    Case("an operator, who is in a team too", OPERATOR, PODS, "gpufleet-operators"),
    Case("a kubelet's heartbeat", node("n"), _lease("kube-node-lease", "n"), "system-node-high"),
    Case("a kubelet's other requests", node("n"), PODS, "system-nodes"),
    Case(
        "a new node",
        Caller("system:bootstrap:abcdef", (BOOTSTRAP_GROUP, AUTHENTICATED)),
        "/apis/certificates.k8s.io/v1",
        "gpufleet-joining-nodes",
    ),
    Case("the approver", APPROVES, "/apis/certificates.k8s.io/v1/certificatesigningrequests", "gpufleet-fleet"),
    Case("the approver's election", APPROVES, _lease(SYSTEM_NAMESPACE, APPROVER), "gpufleet-approver-election"),
    Case("the rotation", ROTATION, "/api/v1/pods?limit=1", "gpufleet-fleet"),
    Case("the rotation's lease", ROTATION, _lease(FLEET_NAMESPACE, LEASE), "gpufleet-rotation-election"),
    Case("kube-proxy", service_account(SYSTEM_NAMESPACE, "kube-proxy"), PODS, "gpufleet-kube-proxy"),
    Case("CoreDNS", service_account(SYSTEM_NAMESPACE, "coredns"), PODS, "kube-system-service-accounts"),
    Case("the test of a node", service_account(FLEET_NAMESPACE, PREFLIGHT_ACCOUNT), PODS, "gpufleet-node-agents"),
    Case("a telemetry agent that came later", service_account(FLEET_NAMESPACE, "telemetry"), "/api/v1/pods", "gpufleet-node-agents"),
    Case("a team's agent", service_account(TEAM.name, "agent"), PODS, f"gpufleet-team-{TEAM.name}"),
    Case("a member of a team", PERSON, PODS, "gpufleet-people"),
    Case("the controller manager", Caller("system:kube-controller-manager", (AUTHENTICATED,)), PODS, "kube-controller-manager"),
    Case("the scheduler", Caller("system:kube-scheduler", (AUTHENTICATED,)), PODS, "kube-scheduler"),
    Case("any other account", service_account("default", "default"), PODS, "service-accounts"),
    Case("any other person", Caller("entra:3", (AUTHENTICATED,)), PODS, "global-default"),
)


@pytest.fixture
def schemas(api: Api) -> dict[str, str]:
    """Names of the flow schemas by their uid, which is what an answer tells."""
    items = api.request("GET", f"{FLOW_CONTROL}/flowschemas").body["items"]
    return {item["metadata"]["uid"]: item["metadata"]["name"] for item in items}


def test_every_kind_of_caller_is_put_where_it_is_meant(api: Api, schemas: dict[str, str]) -> None:
    found = {case.what: schemas[api.request("GET", case.path, by=case.by).headers["X-Kubernetes-PF-FlowSchema-UID"]] for case in CASES}
    assert found == {case.what: case.schema for case in CASES}


def test_no_flow_schema_leads_to_a_level_that_is_not_there(api: Api) -> None:
    for item in api.request("GET", f"{FLOW_CONTROL}/flowschemas").body["items"]:
        dangling = {row["type"]: row["status"] for row in item["status"]["conditions"]}
        assert dangling["Dangling"] == "False", item["metadata"]["name"]


def _figures(api: Api, metric: str) -> dict[str, int]:
    pattern = re.compile(rf'^{metric}{{priority_level="([^"]+)"}} (\S+)$', re.MULTILINE)
    return {name: int(float(value)) for name, value in pattern.findall(api.request("GET", "/metrics").text)}


def test_every_level_has_the_seats_that_its_annotation_says(api: Api) -> None:
    nominal = _figures(api, "apiserver_flowcontrol_nominal_limit_seats")
    assert {level.name: nominal[level.name] for level in LEVELS} == {level.name: seats(level, CLUSTER.api_servers) for level in LEVELS}
    for level in LEVELS:
        live = api.request("GET", f"{FLOW_CONTROL}/prioritylevelconfigurations/{level.name}").body
        assert live["metadata"]["annotations"][SEATS_ANNOTATION] == f"{nominal[level.name]} of 600 per API server"


def test_node_agents_never_have_more_than_their_own_seats_and_operators_never_fewer(api: Api) -> None:
    assert _figures(api, "apiserver_flowcontrol_upper_limit_seats")[AGENTS.name] == seats(AGENTS, CLUSTER.api_servers)
    assert _figures(api, "apiserver_flowcontrol_lower_limit_seats")[OPERATORS.name] == seats(OPERATORS, CLUSTER.api_servers)
