from dataclasses import fields

import pulumi
import pytest
from region_graphs import PROJECT, REGIONS, azure_ids, base_graph, bodies, by_id, planned

from components.base import RegionBase, RegionBaseArgs
from components.base_outputs import BaseOutputs
from components.gallery import source
from components.plan import naming
from components.plan.model import RegionPlan
from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.run import run_program

STORAGE, VAULT = "azure-native:storage:StorageAccount", "azure-native:keyvault:Vault"


def hub_ids(plan: RegionPlan) -> list[str]:
    hub, where = plan.hub, (plan.spec.subscription, plan.base_resource_group, "Microsoft.Network")
    return [
        naming.resource_id(*where, "virtualNetworks", hub.vnet_name),
        *(naming.resource_id(*where, "virtualNetworks", hub.vnet_name, "subnets", subnet.name) for subnet in hub.subnets),
        *(naming.resource_id(*where, "networkSecurityGroups", group.name) for group in hub.security_groups),
        *(naming.resource_id(*where, "natGateways", gateway.name) for gateway in hub.nat_gateways),
        *(naming.resource_id(*where, "publicIPPrefixes", gateway.prefix_name) for gateway in hub.nat_gateways),
        naming.resource_id(*where, "virtualNetworkGateways", hub.gateway_name),
        naming.resource_id(*where, "publicIPAddresses", hub.gateway_address_name),
        naming.resource_id(*where, "dnsResolvers", hub.resolver_name),
        naming.resource_id(*where, "dnsResolvers", hub.resolver_name, "inboundEndpoints", "inbound"),
        naming.resource_id(*where, "privateDnsZones", hub.private_zone),
        naming.resource_id(*where, "privateDnsZones", hub.private_zone, "virtualNetworkLinks", hub.vnet_name),
    ]


def storage_ids(plan: RegionPlan) -> list[str]:
    account = (plan.spec.subscription, plan.base_resource_group, "Microsoft.Storage", "storageAccounts", plan.backup.account)
    containers = [
        naming.resource_id(*account, "blobServices", "default", "containers", cluster.backup_container) for cluster in plan.clusters
    ]
    return [
        naming.resource_id(*account),
        naming.resource_id(*account, "blobServices", "default"),
        naming.resource_id(*account, "managementPolicies", "default"),
        *containers,
        *(f"{container}/immutabilityPolicies/default" for container in containers),
    ]


def gallery_ids(plan: RegionPlan) -> list[str]:
    gallery = naming.resource_id(plan.spec.subscription, plan.base_resource_group, "Microsoft.Compute", "galleries", plan.gallery.name)
    images = plan.gallery.images
    return [gallery, *{image.definition_id for image in images}, *(image.version_id for image in images)]


@pytest.mark.parametrize("region", REGIONS)
def test_the_base_stack_makes_every_planned_thing_once_and_nothing_else(region: str) -> None:
    plan = planned(region)
    group = f"/subscriptions/{plan.spec.subscription}/resourceGroups/{plan.base_resource_group}"
    vaults = [vault.id for cluster in plan.clusters for vault in cluster.vaults]
    assert azure_ids(base_graph(region)) == sorted([group, *hub_ids(plan), *storage_ids(plan), *gallery_ids(plan), *vaults])


@pytest.mark.parametrize("region", REGIONS)
def test_what_the_region_stack_reads_is_what_the_plan_names(region: str) -> None:
    plan = planned(region)

    def program() -> None:
        base = BaseOutputs.from_stack(pulumi.StackReference(f"organization/{PROJECT}/{plan.base_stack}"))
        cluster = plan.clusters[-1]
        pulumi.export("group", base.resource_group)
        pulumi.export("zone", base.hub_private_zone)
        pulumi.export("endpoints", base.hub_endpoints_subnet_id)
        pulumi.export("versions", base.image_version_ids)
        pulumi.export("vault", base.vault_id(cluster.name, "control"))
        pulumi.export("version", base.image_id(cluster.etcd.image))

    outputs = {plan.base_stack: base_graph(region).stack_outputs}
    read = run_program(program, PROJECT, plan.stack, backend=AcceptingCloud(), stack_outputs=outputs).stack_outputs
    endpoints = plan.hub.subnet("endpoints").name
    hub = (plan.spec.subscription, plan.base_resource_group, "Microsoft.Network", "virtualNetworks", plan.hub.vnet_name)
    assert read == {
        "group": plan.base_resource_group,
        "zone": plan.hub.private_zone,
        "endpoints": naming.resource_id(*hub, "subnets", endpoints),
        "versions": {image.pin: image.version_id for image in plan.gallery.images},
        "vault": plan.clusters[-1].vault("control").id,
        "version": plan.clusters[-1].etcd.image.version_id,
    }


def test_the_base_stack_exports_what_the_region_stack_reads_and_nothing_else() -> None:
    assert set(base_graph("dev").stack_outputs) == {field.name for field in fields(BaseOutputs)}


def test_nothing_that_holds_keys_or_snapshots_goes_by_accident() -> None:
    graph = base_graph("southcentralus")
    protected = {resource.type for resource in graph if resource.protect}
    assert protected == {VAULT, STORAGE, "azure-native:storage:BlobContainer"}
    assert all(resource.protect for kind in protected for resource in graph.of_type(kind))


def test_vaults_take_no_connection_from_outside_and_keep_what_is_deleted() -> None:
    for body in bodies(base_graph("southcentralus").of_type(VAULT)):
        assert body["properties"] == {
            "enablePurgeProtection": True,
            "enableRbacAuthorization": True,
            "enableSoftDelete": True,
            "enabledForDeployment": False,
            "enabledForDiskEncryption": False,
            "enabledForTemplateDeployment": False,
            "networkAcls": {"bypass": "AzureServices", "defaultAction": "Deny"},
            "publicNetworkAccess": "Disabled",
            "sku": {"family": "A", "name": "standard"},
            "softDeleteRetentionInDays": 90,
            "tenantId": planned("southcentralus").spec.access.tenant,
        }


def test_the_backup_account_takes_no_connection_from_outside_and_no_shared_key() -> None:
    (body,) = bodies(base_graph("dev").of_type(STORAGE))
    closed = {
        "allowBlobPublicAccess": False,
        "allowCrossTenantReplication": False,
        "allowSharedKeyAccess": False,
        "enableHttpsTrafficOnly": True,
        "minimumTlsVersion": "TLS1_2",
        "networkRuleSet": {"bypass": "None", "defaultAction": "Deny"},
        "publicNetworkAccess": "Disabled",
    }
    assert {key: body.get(key) for key in closed} == closed
    assert body["sku"] == {"name": "Standard_LRS"}


@pytest.mark.parametrize("region", REGIONS)
def test_a_snapshot_cannot_be_deleted_before_its_retention_ends_and_is_deleted_then(region: str) -> None:
    graph, days = base_graph(region), planned(region).backup.retention_days
    locks = bodies(graph.of_type("azure-native:storage:BlobContainerImmutabilityPolicy"))
    assert [lock["immutabilityPeriodSinceCreationInDays"] for lock in locks] == [days] * len(planned(region).clusters)
    (lifecycle,) = bodies(graph.of_type("azure-native:storage:ManagementPolicy"))
    actions = lifecycle["policy"]["rules"][0]["definition"]["actions"]
    assert actions == {part: {"delete": {"daysAfterCreationGreaterThan": days}} for part in ("baseBlob", "version")}


def test_people_dial_in_with_logins_of_the_tenant() -> None:
    plan = planned("southcentralus")
    (gateway,) = bodies(base_graph("southcentralus").of_type("azure-native:network:VirtualNetworkGateway"))
    assert gateway["vpnClientConfiguration"] == {
        "aadAudience": "c632b3df-fb67-4d84-bdcf-b95ad541b5c8",
        "aadIssuer": f"https://sts.windows.net/{plan.spec.access.tenant}/",
        "aadTenant": f"https://login.microsoftonline.com/{plan.spec.access.tenant}",
        "vpnAuthenticationTypes": ["AAD"],
        "vpnClientAddressPool": {"addressPrefixes": [plan.hub.client_pool]},
        "vpnClientProtocols": ["OpenVPN"],
    }


@pytest.mark.parametrize(("region", "generation"), [("dev", "Generation1"), ("southcentralus", "Generation2")])
def test_the_gateway_has_the_generation_that_its_size_exists_in(region: str, generation: str) -> None:
    size = planned(region).spec.hub.gateway.value
    (gateway,) = bodies(base_graph(region).of_type("azure-native:network:VirtualNetworkGateway"))
    assert (gateway["sku"], gateway["vpnGatewayGeneration"]) == ({"name": size, "tier": size}, generation)


def test_the_hub_asks_its_resolver_and_the_resolver_answers_at_the_planned_address() -> None:
    graph, plan = base_graph("dev"), planned("dev").hub
    (network,) = bodies(graph.of_type("azure-native:network:VirtualNetwork"))
    (inbound,) = bodies(graph.of_type("azure-native:dnsresolver:InboundEndpoint"))
    subnet = next(str(item.id) for item in graph.of_type("azure-native:network:Subnet") if item.inputs.get("delegations"))
    assert network["dhcpOptions"] == {"dnsServers": [plan.resolver_address]}
    address = {"privateIpAddress": plan.resolver_address, "privateIpAllocationMethod": "Static", "subnet": {"id": subnet}}
    assert inbound["ipConfigurations"] == [address]
    assert subnet.endswith(plan.subnet("resolver").name)


@pytest.mark.parametrize("region", REGIONS)
def test_an_image_version_has_the_replicas_that_its_creates_need(region: str) -> None:
    versions = by_id(base_graph(region))
    for image in planned(region).gallery.images:
        (profile,) = [body["publishingProfile"] for body in bodies([versions[image.version_id]])]
        assert [target["regionalReplicaCount"] for target in profile["targetRegions"]] == [image.replicas]
        assert profile["excludeFromLatest"] is True


def test_only_an_image_that_boots_from_nvme_says_that_it_can() -> None:
    definitions = by_id(base_graph("southcentralus"))
    images = planned("southcentralus").gallery.images
    assert {image.definition.nvme_disk_controller for image in images} == {True, False}
    for image in images:
        features = definitions[image.definition_id].inputs.get("features") or []
        expected = [{"name": "DiskControllerTypes", "value": "SCSI, NVMe"}] if image.definition.nvme_disk_controller else []
        assert features == expected


def test_a_version_is_made_from_a_machine_or_from_a_managed_image() -> None:
    group = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/builds/providers/Microsoft.Compute"
    machine, image = f"{group}/virtualMachines/build-1", f"{group}/images/cpu-1"
    assert (source(machine).virtual_machine_id, source(machine).id) == (machine, None)
    assert (source(image).virtual_machine_id, source(image).id) == (None, image)


def test_the_gateway_is_made_when_no_subnet_is_left_to_write() -> None:
    graph = base_graph("dev")
    (gateway,) = graph.of_type("azure-native:network:VirtualNetworkGateway")
    waited_on = {urn for subnet in graph.of_type("azure-native:network:Subnet") for urn in subnet.dependencies}
    last = [subnet.urn for subnet in graph.of_type("azure-native:network:Subnet") if subnet.urn not in waited_on]
    assert len(last) == 1
    assert last[0] in gateway.dependencies


def test_what_the_provider_can_only_fail_to_delete_is_left_where_it_is() -> None:
    retained = set()

    def note(args: pulumi.ResourceTransformationArgs) -> None:
        if args.opts.retain_on_delete:
            retained.add(args.type_)

    def program() -> None:
        pulumi.runtime.register_stack_transformation(note)
        RegionBase("base", RegionBaseArgs(planned("dev")))

    run_program(program, PROJECT, planned("dev").base_stack, backend=AcceptingCloud())
    assert retained == {"azure-native:storage:BlobContainerImmutabilityPolicy"}
