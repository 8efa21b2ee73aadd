"""A model that is saved and read back has the very same future, and the same requests at the same moments give the same history."""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from image_bodies import GALLERY, IMAGE, TEMPLATE, image, template, version
from network_bodies import HUB, NET, SPOKE, interface, located, network, place, ref, subnet
from plain_calls import GROUP, LOCATION, OTHER, SUBSCRIPTION, TENANT
from scale_sets_made import body as set_body
from scale_sets_made import ip_configurations, login
from vault_bodies import SECRET, VAULT, secret, vault

from rehearsal.azure.arm_id import parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import instances_of
from rehearsal.azure.errors import AzureError
from rehearsal.azure.persistence import dump, load
from rehearsal.azure.registry import new_cloud
from rehearsal.azure.resource import Json, Request, Response
from rehearsal.azure.scenario import NOTHING_WRONG, Scenario
from rehearsal.azure.scheduled_events import scheduled_events_of

SET = "Microsoft.Compute/virtualMachineScaleSets/pool"
MACHINE = "Microsoft.Compute/virtualMachines/etcd"
RESERVATIONS = "Microsoft.Compute/capacityReservationGroups/kept"
ACCOUNT = "Microsoft.Storage/storageAccounts/fleetbackup"
FRONTEND = f"{NET}/loadBalancers/api/frontendIPConfigurations/api"
ZONE = f"{NET}/privateDnsZones/corp.internal"
BALANCER, SERVICE, ENDPOINT = f"{NET}/loadBalancers/api", f"{NET}/privateLinkServices/api", f"{NET}/privateEndpoints/api"
ROLE = "Microsoft.Authorization/roleAssignments/11111111-1111-4111-8111-1111111111aa"
IDENTITY = "Microsoft.ManagedIdentity/userAssignedIdentities/node"
READER = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/22222222-1111-4111-8111-1111111111aa"
NODES, LINKS = f"{HUB}/subnets/nodes", f"{HUB}/subnets/links"

SCENARIO = Scenario.model_validate(
    {
        "allocation_failures": [{"rate": 0.2}],
        "slow_provisioning": [{"rate": 0.3, "factor": 5}],
        "failed_provisioning": [{"rate": 0.1, "code": "OSProvisioningTimedOut"}],
        "bad_hosts": [{"share": 0.3}],
        "maintenance": [{"at": "10m", "share": 0.5, "kind": "Redeploy"}],
        "host_failures": [{"per_instance_day": 100}],
        "evictions": [{"per_instance_day": 100}],
        "outages": [{"starts": "20m", "ends": "40m", "rate": 0.3}],
        "quotas": {"granted": [{"family": "cores", "vcpus": 16}]},
    }
)


def scale_set(capacity: int, spot: bool, mode: str, tag: str) -> Json:
    """A scale set in the subnet of the nodes; its machines are told before they are deleted."""
    arguments = set_body(capacity, addresses=2, upgradePolicy__mode=mode, overprovision=capacity % 2 == 1)
    profile = arguments["properties"]["virtualMachineProfile"]
    nics = profile["networkProfile"]["networkInterfaceConfigurations"]
    nics[0]["properties"]["ipConfigurations"] = ip_configurations(2, f"{GROUP}/providers/{NODES}")
    if spot:
        profile |= {"priority": "Spot", "evictionPolicy": "Delete"}
    else:
        profile["scheduledEventsProfile"] = {"terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT5M"}}
    profile["osProfile"]["customData"] = tag
    return arguments


def machine() -> Json:
    """A virtual machine on the interface called single, whose disk goes with it."""
    disk = {"createOption": "FromImage", "deleteOption": "Delete", "managedDisk": {"storageAccountType": "Premium_LRS"}}
    reference = {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"}
    return located(
        hardwareProfile={"vmSize": "Standard_D2s_v5"},
        storageProfile={"imageReference": reference, "osDisk": disk},
        osProfile={"computerName": "etcd", **login()},
        networkProfile={"networkInterfaces": [ref(f"{NET}/networkInterfaces/single")]},
    )


def peering(remote: str) -> Json:
    return {"properties": {"remoteVirtualNetwork": ref(remote), "allowForwardedTraffic": True}}


BODIES: dict[str, tuple[Json, ...]] = {
    HUB: (
        network("10.0.0.0/16", subnets={"nodes": "10.0.0.0/26"}),
        network("10.0.0.0/16"),
        network("10.0.0.0/16", "10.9.0.0/24", subnets={"other": "10.0.3.0/24"}),
    ),
    SPOKE: (network("10.1.0.0/16", subnets={"far": "10.1.0.0/24"}),),
    f"{HUB}/virtualNetworkPeerings/there": (peering(SPOKE),),
    f"{SPOKE}/virtualNetworkPeerings/back": (peering(HUB),),
    NODES: (subnet("10.0.0.0/26"), subnet("10.0.0.0/25", natGateway=ref(f"{NET}/natGateways/way"))),
    LINKS: (subnet("10.0.1.0/24", privateLinkServiceNetworkPolicies="Disabled"),),
    f"{NET}/publicIPPrefixes/way": (located("Standard", prefixLength=30),),
    f"{NET}/natGateways/way": (located("Standard", publicIpPrefixes=[ref(f"{NET}/publicIPPrefixes/way")]), located("Standard")),
    f"{NET}/networkInterfaces/single": (interface(), interface(place("one"), place("two")), interface(place("one", address="10.0.0.9"))),
    f"{NET}/networkInterfaces/second": (interface(), interface(place("one", address="10.0.0.9")), interface(place("one", LINKS))),
    BALANCER: (
        located("Standard", frontendIPConfigurations=[place("api", LINKS)], backendAddressPools=[{"name": "servers"}]),
        located("Standard", frontendIPConfigurations=[place("api", NODES)]),
    ),
    SERVICE: (located(ipConfigurations=[place("one", LINKS)], loadBalancerFrontendIpConfigurations=[ref(FRONTEND)]),),
    ENDPOINT: tuple(
        located(
            subnet=ref(f"{SPOKE}/subnets/far"),
            privateLinkServiceConnections=[{"name": "api", "properties": {"privateLinkServiceId": f"{GROUP}/providers/{target}"}}],
        )
        for target in (SERVICE, VAULT)
    ),
    ZONE: ({"location": "global"},),
    f"{ZONE}/virtualNetworkLinks/hub": ({"location": "global", "properties": {"virtualNetwork": ref(HUB), "registrationEnabled": False}},),
    f"{ENDPOINT}/privateDnsZoneGroups/default": (
        {"properties": {"privateDnsZoneConfigs": [{"name": "corp", "properties": {"privateDnsZoneId": f"{GROUP}/providers/{ZONE}"}}]}},
    ),
    VAULT: (vault(), vault(createMode="recover")),
    SECRET: (secret("a"), secret("b")),
    ACCOUNT: ({"location": LOCATION, "sku": {"name": "Standard_LRS"}, "kind": "StorageV2", "properties": {}},),
    f"{ACCOUNT}/blobServices/default/containers/etcd": ({"properties": {}},),
    IDENTITY: ({"location": LOCATION},),
    ROLE: ({"properties": {"principalId": "33333333-1111-4111-8111-1111111111aa", "roleDefinitionId": READER}},),
    f"{HUB}/providers/Microsoft.Authorization/locks/stay": ({"properties": {"level": "CanNotDelete"}},),
    GALLERY: ({"location": LOCATION},),
    IMAGE: (image(),),
    f"{IMAGE}/versions/1.0.0": (version(LOCATION), version(LOCATION, "westeurope")),
    TEMPLATE: (template(),),
    RESERVATIONS: ({"location": LOCATION},),
    f"{RESERVATIONS}/capacityReservations/two": tuple(
        {"location": LOCATION, "sku": {"name": "Standard_D2s_v5", "capacity": number}} for number in (1, 3)
    ),
    MACHINE: (machine(), {**machine(), "tags": {"team": "a"}}),
    SET: tuple(scale_set(*told) for told in ((3, False, "Manual", "YQ=="), (5, False, "Automatic", "Yg=="), (1, True, "Manual", "YQ=="))),
}
"""Bodies of PUT requests by id; several bodies are changes of one resource. Each comes after the resources that it needs."""
ACTIONS: tuple[tuple[str, str, Json | None], ...] = (
    *((SET, name, {"instanceIds": ["0", "1"]}) for name in ("delete", "manualUpgrade", "reimage", "deallocate", "redeploy")),
    (SET, "restart", None),
    (f"{SET}/virtualMachines/2", "simulateEviction", None),
    *((MACHINE, name, None) for name in ("restart", "deallocate", "redeploy")),
    (TEMPLATE, "run", None),
    (TEMPLATE, "cancel", None),
    (ACCOUNT, "regenerateKey", {"keyName": "key1"}),
)

Step = tuple[str, Any, Any]
PUTS = [("PUT", text, number) for text, bodies in BODIES.items() for number in range(len(bodies))]
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.sampled_from(PUTS),
    st.sampled_from([("DELETE", text, None) for text in (*BODIES, f"{SET}/virtualMachines/1", GROUP)]),
    st.sampled_from([("PATCH", text, None) for text in BODIES]),
    st.sampled_from([("POST", number, None) for number in range(len(ACTIONS))]),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 1.0, 20.0, 300.0, 4_000.0, 100_000.0]), st.none()),
    st.just(("approve", None, None)),
)
MADE: list[Step] = [step for text in BODIES for step in (("PUT", text, 0), ("wait", 20.0, None))]
"""Everything, one after another."""


def fresh(scenario: Scenario) -> Cloud:
    """An Azure of two subscriptions with one group."""
    cloud = new_cloud([SUBSCRIPTION, OTHER], TENANT, seed=7, scenario=scenario)
    cloud.handle(Request("PUT", parse(GROUP), body={"location": LOCATION}))
    return cloud


def saved_and_read(cloud: Cloud) -> Cloud:
    """The model as its state directory would give it back."""
    saved = json.loads(json.dumps(dump(cloud)))
    return load(saved, lambda data: new_cloud(data["subscriptions"], data["tenant"], seed=data["seed"], scenario=NOTHING_WRONG))


def taken(cloud: Cloud, step: Step) -> Any:
    """Take a step: what is answered, in JSON."""
    verb, what, number = step
    if verb == "wait":
        cloud.advance(cloud.now + what)
        return None
    if verb == "approve":
        sets = [one for one in cloud.resources.values() if one.id.type.lower() == SET.rpartition("/")[0].lower()]
        for notice in [notice for one in sets for notice in scheduled_events_of(cloud).pending(one.key)]:
            scheduled_events_of(cloud).approve(cloud, notice.id)
        return None
    text, action, body = ACTIONS[what] if verb == "POST" else (what, "", {"tags": {"team": "b"}} if verb == "PATCH" else None)
    if verb == "PUT":
        body = BODIES[text][number]
    arm_id = parse(text if text.startswith("/") else f"{GROUP}/providers/{text}")
    before = json.dumps(kept(dump(cloud)))
    answer, refused = response_to(cloud, Request(verb, arm_id, action, body=deepcopy(body)))
    if refused is not None:
        assert json.dumps(kept(dump(cloud))) == before, f"{verb} {text} was refused ({refused}) and has changed something"
        return [refused.status, refused.body()]
    return json.loads(json.dumps([answer.status, answer.body, answer.operation.id if answer.operation else None]))


def response_to(cloud: Cloud, request: Request) -> tuple[Response, AzureError | None]:
    """Return the response, and the error of a refused request."""
    try:
        return cloud.handle(request), None
    except AzureError as refused:
        return Response(refused.status), refused


def kept(saved: Json) -> Json:
    """Return the part of a saved state that a refused request must not change: all but the gates before the model."""
    return {**saved, "gates": None}


def end(cloud: Cloud) -> str:
    """The model when what goes on has ended, and every answer about what there is."""
    cloud.advance(cloud.now + 6 * 3_600.0)
    stuck = [one for one in cloud.operations.values() if one.running and cloud.now - one.started > 4 * 3_600.0]
    assert not stuck, f"{stuck[0].name} of {stuck[0].key} does not end"
    arguments = [cloud.resource_type_of(one.id).view(cloud, one, {}) for one in cloud.resources.values()]
    instances = [len(instances_of(one)) for one in cloud.resources.values() if one.id.type.endswith("/virtualMachineScaleSets")]
    return json.dumps([dump(cloud), arguments, instances])


def history(steps: Iterable[Step], scenario: Scenario, saved_at: int = -1) -> tuple[list[Any], str]:
    """Every answer, and the end; the model is saved and read back before a step."""
    cloud, answers = fresh(scenario), []
    for number, step in enumerate(steps):
        if number == saved_at:
            cloud = saved_and_read(cloud)
        answers.append(taken(cloud, step))
    return answers, end(cloud)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, max_size=40), st.booleans(), st.data())
def test_a_model_that_is_read_back_goes_on_as_if_it_had_never_been_saved(more: list[Step], wrong: bool, data: st.DataObject) -> None:
    steps = [*MADE, *more]
    scenario = SCENARIO if wrong else Scenario.model_validate({"throttling": {"enabled": False}})
    at = data.draw(st.integers(0, len(steps)))
    answers, ended = history(steps, scenario)
    again, ended_again = history(steps, scenario, saved_at=at)
    assert again == answers
    assert ended_again == ended
    for answer in answers:
        event(answer[1]["code"] if answer and answer[0] >= 400 else "taken")


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, max_size=60))
def test_the_same_requests_give_the_same_history(more: list[Step]) -> None:
    steps = [*MADE, *more]
    assert history(steps, SCENARIO) == history(steps, SCENARIO)


def test_everything_that_is_put_here_is_taken_where_nothing_goes_wrong() -> None:
    cloud = fresh(Scenario.model_validate({"throttling": {"enabled": False}}))
    for step in MADE:
        answer = taken(cloud, step)
        assert answer is None or answer[0] < 400, answer
        taken(cloud, ("wait", 400.0, None))
