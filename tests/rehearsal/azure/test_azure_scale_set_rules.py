"""A request that breaks a published rule is refused with Azure's code, and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from scale_sets_made import (
    EPHEMERAL,
    GROUP,
    HEALTH,
    NETWORK,
    NICS,
    PROFILE,
    SET,
    STORAGE,
    SUBNET,
    ask,
    azure,
    body,
    error,
    instance,
    ip_configurations,
    nic,
    put,
    refused,
    scale_set,
)

from rehearsal.azure.compute.instances import instances_of
from rehearsal.azure.compute.views import infiniband_domain
from rehearsal.azure.errors import AzureError
from rehearsal.azure.scenario import Grant, Quotas, Scenario

MANAGED = {"id": f"{GROUP}/providers/Microsoft.Compute/images/own"}


@pytest.mark.parametrize(
    ("changes", "code", "target"),
    [
        ({"orchestrationMode": "Flexible"}, "NotModelled", "orchestrationMode"),
        ({"upgradePolicy": {}}, "InvalidParameter", "upgradePolicy.mode"),
        ({"upgradePolicy": {"mode": "Rolling"}}, "OperationNotAllowed", "upgradePolicy.mode"),
        ({"upgradePolicy": {"mode": "Manual", "rollingUpgradePolicy": {"maxSurge": True}}}, "NotModelled", "rollingUpgradePolicy.maxSurge"),
        (
            {"upgradePolicy": {"mode": "Manual", "rollingUpgradePolicy": {"maxBatchInstancePercent": 4}}},
            "InvalidParameter",
            "maxBatchInstancePercent",
        ),
        ({"platformFaultDomainCount": 6}, "InvalidParameter", "platformFaultDomainCount"),
        ({NICS: []}, "InvalidParameter", "networkInterfaceConfigurations"),
        (
            {NICS: [nic("a", True, ip_configurations(1)), nic("b", True, ip_configurations(1))]},
            "InvalidParameter",
            "networkInterfaceConfigurations",
        ),
        ({NICS: [nic("a", True, [])]}, "InvalidParameter", "ipConfigurations"),
        ({NICS: [nic("a", True, ip_configurations(257))]}, "InvalidParameter", "ipConfigurations"),
        ({NICS: [nic("a", True, [*ip_configurations(1), *ip_configurations(1)])]}, "InvalidParameter", "ipConfigurations"),
        (
            {NICS: [nic("a", True, [{"name": str(one), "properties": {"primary": False, "subnet": {"id": SUBNET}}} for one in (1, 2)])]},
            "InvalidParameter",
            "ipConfigurations",
        ),
        ({NICS: [nic("a", True, [{"name": "one", "properties": {"primary": True}}])]}, "InvalidParameter", "subnet"),
        ({NICS: [nic("a", True, ip_configurations(1, f"{NETWORK}/subnets/none"))]}, "InvalidResourceReference", f"{NETWORK}/subnets/none"),
        ({f"{PROFILE}__osProfile__computerNamePrefix": "p" * 59}, "InvalidParameter", "computerNamePrefix"),
        ({f"{PROFILE}__evictionPolicy": "Delete"}, "OperationNotAllowed", "evictionPolicy"),
        ({f"{STORAGE}__osDisk": EPHEMERAL}, "OperationNotAllowed", "osDisk.diffDiskSettings.placement"),
        ({"automaticRepairsPolicy": {"enabled": True}}, "InvalidParameter", "automaticRepairsPolicy"),
        (
            {f"{PROFILE}__scheduledEventsProfile": {"terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT16M"}}},
            "InvalidParameter",
            "terminateNotificationProfile.notBeforeTimeout",
        ),
    ],
    ids=lambda value: None if not isinstance(value, dict) else "-".join(value)[-60:],
)
def test_a_scale_set_that_breaks_a_rule_is_refused(changes: dict[str, Any], code: str, target: str | None) -> None:
    found = refused(body(2, **changes))
    assert found.code == code
    assert target in (None, found.target)


def test_a_scale_set_without_orchestration_mode_is_uniform_for_good() -> None:
    cloud, sent = azure(), body(1)
    del sent["properties"]["orchestrationMode"]
    put(cloud, SET, sent)
    assert scale_set(cloud).properties["orchestrationMode"] == "Uniform"
    put(cloud, SET, body(2))
    assert len(instances_of(scale_set(cloud))) == 2
    del sent["properties"]["virtualMachineProfile"]
    assert (refused(sent).code, refused(sent).target) == ("NotModelled", "orchestrationMode")


@pytest.mark.parametrize(
    ("capacity", "changes", "bound"),
    [
        (101, {"singlePlacementGroup": True}, 100),
        (1_001, {}, 1_000),
        (601, {f"{STORAGE}__imageReference": MANAGED}, 600),
    ],
)
def test_a_set_takes_as_many_machines_as_its_placement_groups_and_image_allow(capacity: int, changes: dict[str, Any], bound: int) -> None:
    found = refused(body(capacity, **changes))
    assert (found.code, found.target) == ("InvalidParameter", "sku.capacity")
    assert f"at most {bound} machines" in found.message
    cloud = azure()
    put(cloud, SET, body(bound, **changes))
    assert len(instances_of(scale_set(cloud))) == bound


def test_zonal_sets_have_one_or_five_fault_domains() -> None:
    assert refused({**body(platformFaultDomainCount=3), "zones": ["1"]}).target == "platformFaultDomainCount"
    assert refused({**body(), "zones": ["1", "1"]}).code == "InvalidAvailabilityZone"
    sent = {**body(), "zones": ["1", "2"]}
    del sent["properties"]["platformFaultDomainCount"]
    cloud = azure()
    put(cloud, SET, sent)
    assert scale_set(cloud).properties["platformFaultDomainCount"] == 1


@pytest.mark.parametrize("minutes", [9, 91])
def test_the_grace_period_of_repairs_is_ten_to_ninety_minutes(minutes: int) -> None:
    policy = {"enabled": True, "gracePeriod": f"PT{minutes}M"}
    found = refused(body(automaticRepairsPolicy=policy, virtualMachineProfile__extensionProfile={"extensions": [HEALTH]}))
    assert found.target == "automaticRepairsPolicy.gracePeriod"


def test_a_set_has_one_source_of_health() -> None:
    both = {
        f"{PROFILE}__extensionProfile": {"extensions": [HEALTH]},
        f"{PROFILE}__networkProfile__healthProbe": {"id": f"{NETWORK}/x"},
        "automaticRepairsPolicy": {"enabled": True},
    }
    assert "Only one source" in refused(body(**both)).message


def test_spot_machines_get_no_terminate_notification() -> None:
    notice = {"terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT5M"}}
    found = refused(body(**{f"{PROFILE}__priority": "Spot", f"{PROFILE}__scheduledEventsProfile": notice}))
    assert (found.code, found.target) == ("OperationNotAllowed", "terminateNotificationProfile")


def test_an_ephemeral_os_disk_needs_read_only_caching_and_room_on_the_size() -> None:
    on_nvme = "Standard_D2ads_v6"
    assert refused(body(size=on_nvme, **{f"{STORAGE}__osDisk": {**EPHEMERAL, "caching": "ReadWrite"}})).target == "osDisk.caching"
    wrong = {**EPHEMERAL, "diffDiskSettings": {"option": "Local", "placement": "CacheDisk"}}
    assert "use placement NvmeDisk" in refused(body(size=on_nvme, **{f"{STORAGE}__osDisk": wrong})).message
    spot = {f"{PROFILE}__priority": "Spot", f"{PROFILE}__evictionPolicy": "Deallocate", f"{STORAGE}__osDisk": EPHEMERAL}
    assert refused(body(size=on_nvme, **spot)).target == "virtualMachineProfile.evictionPolicy"
    assert error(put(azure(), SET, body(size=on_nvme, **{f"{STORAGE}__osDisk": EPHEMERAL}))) == ""


def test_infiniband_sizes_have_infiniband_in_a_single_placement_group_only() -> None:
    size = "Standard_ND96isr_H100_v5"
    domains = []
    for single in (True, False):
        cloud = azure()
        put(cloud, SET, body(2, size=size, singlePlacementGroup=single))
        resource = scale_set(cloud)
        domains.append({infiniband_domain(cloud, resource, one) for one in instances_of(resource).values()})
    assert len(domains[0]) == 1
    assert None not in domains[0]
    assert domains[1] == {None}


def test_a_subnet_without_room_refuses_the_whole_request_and_gives_quota_back() -> None:
    cloud = azure(Scenario(quotas=Quotas(granted=(Grant(family="standardDSv5Family", vcpus=200),))), subnet="10.0.0.0/28")
    with pytest.raises(AzureError, match="SubnetIsFull"):
        ask(cloud, "PUT", SET, body(6))
    assert cloud.find(SET) is None
    assert error(put(cloud, SET, body(5))) == ""


def test_a_quota_one_machine_short_refuses_the_whole_request() -> None:
    cloud = azure(Scenario(quotas=Quotas(granted=(Grant(family="standardDSv5Family", vcpus=9),))))
    with pytest.raises(AzureError) as caught:
        ask(cloud, "PUT", SET, body(5))
    assert caught.value.code == "OperationNotAllowed"
    assert caught.value.details[0].code == "QuotaExceeded"
    assert error(put(cloud, SET, body(4))) == ""
    with pytest.raises(AzureError, match="exceeding approved"):
        ask(cloud, "PATCH", SET, {"sku": {"capacity": 5}})
    assert scale_set(cloud).body["sku"]["capacity"] == 4
    assert instance(cloud, 3).state == "Succeeded"


def test_a_gallery_image_must_be_replicated_to_the_location() -> None:
    cloud = azure()
    gallery = f"{GROUP}/providers/Microsoft.Compute/galleries/fleet"
    put(cloud, gallery, {"location": "swedencentral"})
    put(
        cloud,
        f"{gallery}/images/node",
        {
            "location": "swedencentral",
            "properties": {
                "osType": "Linux",
                "osState": "Generalized",
                "hyperVGeneration": "V2",
                "identifier": {"publisher": "fleet", "offer": "node", "sku": "one"},
            },
        },
    )
    version = f"{gallery}/images/node/versions/1.0.0"
    with pytest.raises(AzureError, match="GalleryImageNotFound"):
        ask(cloud, "PUT", SET, body(**{f"{STORAGE}__imageReference": {"id": version}}))
    source = {"storageProfile": {"source": {"id": f"{GROUP}/providers/Microsoft.Compute/images/own"}}}
    answer = ask(
        cloud,
        "PUT",
        version,
        {"location": "swedencentral", "properties": {**source, "publishingProfile": {"targetRegions": [{"name": "Sweden Central"}]}}},
    )
    with pytest.raises(AzureError, match="not available in swedencentral"):
        ask(cloud, "PUT", SET, body(**{f"{STORAGE}__imageReference": {"id": version}}))
    assert answer.operation is not None
    cloud.run_until_idle()
    assert error(put(cloud, SET, body(**{f"{STORAGE}__imageReference": {"id": version}}))) == ""
