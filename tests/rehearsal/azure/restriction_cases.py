"""Valid bodies, and for each row of the table of restrictions the values that break it and those that do not."""

from __future__ import annotations

import base64
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from image_bodies import GALLERY, IMAGE, image, template
from image_bodies import version as image_version
from network_bodies import HUB, NET, NODES, interface, located, network, place, public, ref
from plain_calls import GROUP, LOCATION, Calls
from scale_sets_made import SSH_KEY, ip_configurations, login, nic
from vault_bodies import VAULT, vault

from rehearsal.azure.arm_id import GROUP_TYPE
from rehearsal.azure.resource import Json
from rehearsal.azure.restrictions.machines import DATA_CHARACTERS, FORBIDDEN_PASSWORDS, MACHINE, PROFILES, RESERVED_USERS, SCALE_SET
from rehearsal.azure.restrictions.restriction import PLACEHOLDER, Between, Matches, Restriction
from rehearsal.azure.restrictions.service_tags import SERVICE_TAGS

ACCOUNT = "Microsoft.Storage/storageAccounts/fleetbackup"
IDENTITY = "Microsoft.ManagedIdentity/userAssignedIdentities/node"
UBUNTU = {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"}
RULE = {"priority": 100, "direction": "Inbound", "access": "Allow", "protocol": "*", "sourcePortRange": "*", "destinationPortRange": "*"}
RULE |= {"sourceAddressPrefix": "*", "destinationAddressPrefix": "*"}
GENERATION_1 = f"{GALLERY}/images/first"


@dataclass(frozen=True)
class Case:
    """A value for the place of a row, and other values by place. A dict is merged into the one at its place; $ is the machine profile."""

    value: Any
    also: dict[str, Any] = field(default_factory=dict)


def _profile(**more: Any) -> Json:
    disk = {"lun": 0, "createOption": "Empty", "diskSizeGB": 8}
    storage = {"imageReference": UBUNTU, "osDisk": {"createOption": "FromImage"}, "dataDisks": [disk]}
    return {"osProfile": login(), "storageProfile": storage, **more}


def _machine() -> Json:
    interfaces = {"networkInterfaces": [ref(f"{NET}/networkInterfaces/single")]}
    body = located(**_profile(hardwareProfile={"vmSize": "Standard_D2s_v5"}, networkProfile=interfaces))
    body["properties"]["osProfile"]["computerName"] = "single"
    return body


def _scale_set() -> Json:
    cards = {"networkInterfaceConfigurations": [nic("nic", True, ip_configurations(1, ref(NODES)["id"]))]}
    body = located(orchestrationMode="Uniform", upgradePolicy={"mode": "Manual"}, virtualMachineProfile=_profile(networkProfile=cards))
    body["properties"]["virtualMachineProfile"]["osProfile"]["computerNamePrefix"] = "pool-"
    return {**body, "sku": {"name": "Standard_D2s_v5", "capacity": 1}}


def _balancer(name: str) -> Json:
    front, pool = ref(f"{NET}/loadBalancers/{name}/frontendIPConfigurations/f"), ref(f"{NET}/loadBalancers/{name}/backendAddressPools/p")
    rule = {"protocol": "Tcp", "frontendPort": 80, "backendPort": 80, "frontendIPConfiguration": front}
    outbound = {"protocol": "All", "frontendIPConfigurations": [front], "backendAddressPool": pool}
    return located(
        "Standard",
        frontendIPConfigurations=[place("f")],
        backendAddressPools=[{"name": "p"}],
        probes=[{"name": "h", "properties": {"protocol": "Tcp", "port": 80}}],
        loadBalancingRules=[{"name": "r", "properties": rule}],
        outboundRules=[{"name": "o", "properties": outbound}],
    )


def _hub() -> Json:
    whole = network("10.0.0.0/16", subnets={"nodes": "10.0.0.0/24"})
    whole["properties"]["dhcpOptions"] = {"dnsServers": ["10.0.0.9"]}
    return whole


ROUTE = {"addressPrefix": "10.9.0.0/16", "nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.0.0.8"}
BASES: dict[str, tuple[str, Json]] = {
    GROUP_TYPE: (GROUP, {"location": LOCATION}),
    MACHINE: (f"{MACHINE}/single", _machine()),
    SCALE_SET: (f"{SCALE_SET}/pool", _scale_set()),
    "Microsoft.Compute/disks": ("Microsoft.Compute/disks/data", located(creationData={"createOption": "Empty"}, diskSizeGB=8)),
    "Microsoft.Compute/proximityPlacementGroups": ("Microsoft.Compute/proximityPlacementGroups/near", {"location": LOCATION}),
    "Microsoft.Compute/capacityReservationGroups": ("Microsoft.Compute/capacityReservationGroups/kept", {"location": LOCATION}),
    "Microsoft.Compute/galleries": (GALLERY, {"location": LOCATION}),
    "Microsoft.Compute/galleries/images": (IMAGE, image()),
    "Microsoft.Storage/storageAccounts": (
        ACCOUNT,
        {**located("Standard_LRS", networkAcls={"defaultAction": "Allow", "ipRules": [{"value": "20.0.0.1"}]}), "kind": "StorageV2"},
    ),
    "Microsoft.Storage/storageAccounts/blobServices": (f"{ACCOUNT}/blobServices/default", {"properties": {}}),
    "Microsoft.Storage/storageAccounts/blobServices/containers": (f"{ACCOUNT}/blobServices/default/containers/etcd", {"properties": {}}),
    "Microsoft.KeyVault/vaults": (VAULT, vault(networkAcls={"ipRules": [{"value": "20.0.0.1"}]})),
    "Microsoft.ManagedIdentity/userAssignedIdentities": (IDENTITY, {"location": LOCATION}),
    "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials": (
        f"{IDENTITY}/federatedIdentityCredentials/pods",
        {"properties": {"issuer": "https://example.org", "subject": "system", "audiences": ["api://AzureADTokenExchange"]}},
    ),
    "Microsoft.VirtualMachineImages/imageTemplates": ("Microsoft.VirtualMachineImages/imageTemplates/build", template()),
    "Microsoft.Authorization/locks": ("Microsoft.Authorization/locks/kept", {"properties": {"level": "CanNotDelete"}}),
    "Microsoft.Network/virtualNetworks": (HUB, _hub()),
    "Microsoft.Network/virtualNetworks/subnets": (NODES, {"properties": {"addressPrefix": "10.0.0.0/24"}}),
    "Microsoft.Network/virtualNetworks/virtualNetworkPeerings": (f"{HUB}/virtualNetworkPeerings/out", {"properties": {}}),
    "Microsoft.Network/networkSecurityGroups": (
        f"{NET}/networkSecurityGroups/rules",
        located(securityRules=[{"name": "one", "properties": RULE}]),
    ),
    "Microsoft.Network/networkSecurityGroups/securityRules": (f"{NET}/networkSecurityGroups/rules/securityRules/one", {"properties": RULE}),
    "Microsoft.Network/loadBalancers": (f"{NET}/loadBalancers/api", _balancer("api")),
    "Microsoft.Network/natGateways": (f"{NET}/natGateways/out", located("Standard")),
    "Microsoft.Network/networkInterfaces": (f"{NET}/networkInterfaces/single", interface(dnsSettings={"dnsServers": ["10.0.0.9"]})),
    "Microsoft.Network/publicIPAddresses": (f"{NET}/publicIPAddresses/front", public(dnsSettings={"domainNameLabel": "front"})),
    "Microsoft.Network/publicIPPrefixes": (f"{NET}/publicIPPrefixes/block", located("Standard", prefixLength=30)),
    "Microsoft.Network/routeTables": (f"{NET}/routeTables/hops", located(routes=[{"name": "one", "properties": ROUTE}])),
    "Microsoft.Network/routeTables/routes": (f"{NET}/routeTables/hops/routes/one", {"properties": ROUTE}),
    "Microsoft.Network/virtualNetworkGateways": (f"{NET}/virtualNetworkGateways/vpn", located()),
    "Microsoft.Network/privateEndpoints": (f"{NET}/privateEndpoints/blob", located()),
    "Microsoft.Network/privateLinkServices": (f"{NET}/privateLinkServices/api", located()),
    "Microsoft.Network/privateDnsZones": (f"{NET}/privateDnsZones/fleet.internal", {"location": "global"}),
}
"""An id and a valid body of each type that a row concerns."""

MADE = (
    "Microsoft.Network/virtualNetworks",
    "Microsoft.Network/networkInterfaces",
    "Microsoft.Network/networkSecurityGroups",
    "Microsoft.Network/routeTables",
    "Microsoft.Compute/galleries",
    "Microsoft.Compute/galleries/images",
    "Microsoft.Storage/storageAccounts",
    "Microsoft.ManagedIdentity/userAssignedIdentities",
    MACHINE,
    SCALE_SET,
)


def calls_with_parents() -> Calls:
    """Calls to a cloud that contains what the bodies refer to."""
    calls = Calls()
    for kind in MADE:
        calls.put(*deepcopy(BASES[kind]))
    calls.put(GENERATION_1, image(hyperVGeneration="V1", identifier={"publisher": "p", "offer": "o", "sku": "first"}))
    calls.put(f"{GENERATION_1}/versions/1.0.0", image_version(LOCATION))
    calls.put("Microsoft.Compute/proximityPlacementGroups/second", {"location": LOCATION, "zones": ["2"]})
    return calls


def base_of(kind: str) -> tuple[str, Json]:
    """Return a new id and body of a type; * is any type."""
    return deepcopy(BASES["Microsoft.Network/natGateways" if kind == "*" else kind])


def write(kind: str, body: Json, where: str, value: Any) -> None:
    """Write a value into the first item at a place; a dict is merged."""
    if where == "$size":
        where = "sku.name" if kind == SCALE_SET else "properties.hardwareProfile.vmSize"
    *steps, last = where.replace("$", PROFILES.get(kind, "")).split(".")
    inner: Any = body
    for step in steps:
        inner = inner.setdefault(step.removesuffix("[]"), {})
        inner = inner[0] if step.endswith("[]") else inner
    if last.endswith("[]"):
        items = inner.setdefault(last.removesuffix("[]"), [value])
        items[0] = _merged(items[0], value)
    elif isinstance(value, dict) and isinstance(inner.get(last), dict) and last != "imageReference":
        inner[last] = _merged(inner[last], value)
    else:
        inner[last] = value


def _merged(known: Any, value: Any) -> Any:
    """Return an object with changes merged in, where None removes a property, or the value if it is no object."""
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in {**known, **value}.items() if item is not None}


def _encoded(size: int) -> str:
    return base64.b64encode(bytes(size)).decode()


def _key(kind: str, *parts: bytes) -> str:
    blob = b"".join(len(one).to_bytes(4, "big") + one for one in (kind.encode(), *parts))
    return f"{kind} {base64.b64encode(blob).decode()} someone"


def _rsa(bits: int) -> str:
    return _key("ssh-rsa", b"\1\0\1", b"\0" + (1 << (bits - 1)).to_bytes(bits // 8, "big"))


def _values(*values: Any, **also: Any) -> st.SearchStrategy[Case]:
    return st.sampled_from([Case(one, {key.replace("__", "."): value for key, value in also.items()}) for one in values])


def _cases(*cases: Case) -> st.SearchStrategy[Case]:
    return st.sampled_from(cases)


def _disks(count: int) -> list[Json]:
    return [{"lun": lun, "createOption": "Empty", "diskSizeGB": 8} for lun in range(count)]


_WINDOWS = {
    "$.osProfile": {"linuxConfiguration": None, "windowsConfiguration": {"provisionVMAgent": True}, "adminPassword": "Strong-pass-1"}
}
_KEYLESS = {"linuxConfiguration": None}
_GOOD_PASSWORDS = ("Abc-12", "A" * 70 + "a1", "correct-Horse9")
_STRONG = "correct-Horse9"
_ZONE_GROUP = ref("Microsoft.Compute/proximityPlacementGroups/second")
_FIRST = ref(f"{GENERATION_1}/versions/1.0.0")
_ARM = {**UBUNTU, "sku": "server-arm64"}
_FOCAL = {"publisher": "Canonical", "offer": "0001-com-ubuntu-server-focal", "sku": "20_04-lts-gen2", "version": "latest"}
SIDES = ("source", "destination")
_PREFIX_CASES = (
    _values("VIRTUAL_NETWORK", "Nonsense", "10.0.0.0/33", "300.1.1.1", "AzureNothing.westus", "50.206.209.68/27"),
    st.sampled_from(sorted(SERVICE_TAGS)).map(Case) | _values("*", "10.0.0.0/8", "Storage.WestUS", "internet", "2001:db8::/32", ""),
)
_PORT_CASES = (_values("65536", "22-21", "http", "-1", "1-", "1-2-3"), _values("*", "0", "65535", "1-65535", "22"))

VALUES: dict[str, tuple[st.SearchStrategy[Case], st.SearchStrategy[Case]]] = {
    "tags": (_values({str(one): "" for one in range(51)}), _values({str(one): "" for one in range(50)})),
    "tag names": (st.sampled_from("<>%&\\?/").map(lambda one: Case({f"a{one}b": "x"})), _values({"a b:c=d": "x"})),
    "tag name length": (_values({"n" * 513: "x"}), _values({"n" * 512: "x"})),
    "tag value length": (_values({"n": "x" * 257}), _values({"n": "x" * 256})),
    "customData": (_values(_encoded(65_536), "a" * (DATA_CHARACTERS + 4), "not base64!", "abc"), _values(_encoded(65_535), "Ym9vdA==", "")),
    "userData": (_values(_encoded(65_536), "not base64!", "abc"), _values(_encoded(65_535), "Ym9vdA==")),
    "adminUsername missing": (_values({"adminUsername": None}), _values({})),
    "linuxConfiguration": (
        _values({"linuxConfiguration": {"disablePasswordAuthentication": True}}),
        _values({"linuxConfiguration": {"disablePasswordAuthentication": False}, "adminPassword": _STRONG}),
    ),
    "adminPassword missing": (_values(_KEYLESS), _values({**_KEYLESS, "adminPassword": _STRONG})),
    "adminPassword": (
        _values("password", "aA1!", "abcdefgh1", "A1-" + "a" * 70, "tab\tA1a", "") | _cases(Case("Aa1-567", _WINDOWS)),
        _values(*_GOOD_PASSWORDS) | _cases(Case("A1-" + "a" * 100, _WINDOWS)),
    ),
    "adminPassword known": (
        st.sampled_from([one for one in FORBIDDEN_PASSWORDS if one != "iloveyou!"]).map(Case),
        _values(*_GOOD_PASSWORDS),
    ),
    "adminUsername": (
        st.sampled_from(RESERVED_USERS).map(lambda one: Case(one.title()))
        | _values("name.", "a@b", "x" * 65, "-fleet", "two words")
        | _cases(Case("x" * 21, _WINDOWS)),
        _cases(*(Case(one, {"$.osProfile.linuxConfiguration": login(one)["linuxConfiguration"]}) for one in ("fleet", "x" * 64, "{you}"))),
    ),
    "computerName on Linux": (_values("a_b", "x" * 65, "a b", "-a", "a-", "ä"), _values("x" * 64, "a.b", "node-1")),
    "computerName on Windows": (_cases(*(Case(one, _WINDOWS) for one in ("x" * 16, "123", "a.b"))), _cases(Case("x" * 15, _WINDOWS))),
    "computerNamePrefix on Linux": (_values("a_b", "x" * 59, "a b"), _values("x" * 58, "node-")),
    "computerNamePrefix on Windows": (_cases(*(Case(one, _WINDOWS) for one in ("x" * 10, "12"))), _cases(Case("x" * 9, _WINDOWS))),
    "keyData": (
        _values("ssh-rsa", "ssh-rsa AAAA", "aaaa", "", _rsa(1_024), _key("ssh-dss", b"x"), _key("ssh-ed25519", b"x" * 31), SSH_KEY[4:]),
        _values(_rsa(2_048), _rsa(4_096), SSH_KEY, _key("ssh-ed25519", b"x" * 32)),
    ),
    "key path": (
        _values("/root/.ssh/authorized_keys", "/home/other/.ssh/authorized_keys", "./"),
        _values("/home/gpufleet/.ssh/authorized_keys"),
    ),
    "extensions": (
        _values([{"name": "a", "properties": {}}, {"name": "A", "properties": {}}]),
        _values([{"name": "a", "properties": {}}, {"name": "b", "properties": {}}]),
    ),
    "dataDisks": (
        _cases(Case(_disks(5)), Case(_disks(33), {"$size": "Standard_ND96isr_H100_v5"})),
        _cases(Case(_disks(4)), Case(_disks(32), {"$size": "Standard_ND96isr_H100_v5"}), Case([])),
    ),
    "dataDisks.lun": (_values(_disks(2) + _disks(1)), _values(_disks(2))),
    "dataDisk.diskSizeGB": (
        _values(*({"diskSizeGB": size} for size in (0, -1, 32_768))),
        _values({"diskSizeGB": 1}, {"diskSizeGB": 32_767}, {"diskSizeGB": 65_536, "managedDisk": {"storageAccountType": "PremiumV2_LRS"}}),
    ),
    "osDisk.diskSizeGB": (_values(0, -1, 4_096), _values(30, 4_095)),
    "osDisk.storageAccountType": (_values("UltraSSD_LRS", "PremiumV2_LRS"), _values("Premium_LRS", "StandardSSD_ZRS")),
    "dataDisk.storageAccountType": (
        _values("UltraSSD_LRS"),
        _cases(Case("Premium_LRS"), Case("UltraSSD_LRS", {"properties.additionalCapabilities": {"ultraSSDEnabled": True}})),
    ),
    "dataDisk.caching": (
        _values({"caching": "ReadOnly", "managedDisk": {"storageAccountType": "PremiumV2_LRS"}}),
        _values({"caching": "None", "managedDisk": {"storageAccountType": "PremiumV2_LRS"}}, {"caching": "ReadOnly"}),
    ),
    "disk.diskSizeGB": (
        _cases(Case(0), Case(32_768), Case(65_537, {"sku": {"name": "UltraSSD_LRS"}})),
        _cases(Case(1), Case(32_767), Case(65_536, {"sku": {"name": "UltraSSD_LRS"}})),
    ),
    "disk.zones": (_values(["1", "2"]), _values(["1"])),
    "imageReference": (
        _values(*({**UBUNTU, **one} for one in ({"publisher": "Nobody"}, {"offer": "none"}, {"sku": "9999"}))),
        _values(UBUNTU, _FOCAL, {**UBUNTU, "publisher": "{image_publisher}"}),
    ),
    "imageReference.version": (_values("newest", "1", "1.0", "v1.0.0"), _values("latest", "24.04.202511010", "1.0.0", "1.2.3.4")),
    "image generation": (
        _cases(*(Case(one, {"$size": "Standard_NC24ads_A100_v4"}) for one in (_FIRST, {**UBUNTU, "sku": "server-gen1"}))),
        _cases(Case(UBUNTU, {"$size": "Standard_NC24ads_A100_v4"}), Case(_FIRST), Case({**UBUNTU, "sku": "server-gen1"})),
    ),
    "image disk controller": (_cases(Case(_FOCAL, {"$size": "Standard_D2ads_v6"})), _cases(Case(UBUNTU, {"$size": "Standard_D2ads_v6"}))),
    "diskControllerType": (
        _cases(Case("NVMe"), Case("SCSI", {"$size": "Standard_D2ads_v6"})),
        _cases(Case("SCSI"), Case("NVMe", {"$size": "Standard_D2ads_v6"})),
    ),
    "image architecture": (_values(_ARM), _values(UBUNTU)),
    "OS disk of an image": (_values(1, 29), _values(30, 64)),
    "proximityPlacementGroup zones": (_cases(Case(_ZONE_GROUP, {"zones": ["1", "2"]})), _cases(Case(_ZONE_GROUP, {"zones": ["2"]}))),
    "proximityPlacementGroup location": (_cases(Case(_ZONE_GROUP, {"location": "westeurope"})), _values(_ZONE_GROUP)),
    "dataDisk.diskSizeGB missing": (_values({"diskSizeGB": None}), _values({})),
    "imageReference missing": (_values({"imageReference": None}), _values({})),
    "osProfile missing": (_values({"osProfile": None}), _values({})),
    "proximityPlacementGroup": (
        _cases(Case(_ZONE_GROUP, {"zones": ["1"]})),
        _cases(Case(_ZONE_GROUP, {"zones": ["2"]}), Case(_ZONE_GROUP)),
    ),
    "zones of proximityPlacementGroups": (_values(["1", "2"]), _values(["1"], [])),
    "networkInterfaceConfigurations": (
        _values([nic(str(one), one == 0, ip_configurations(1, ref(NODES)["id"])) for one in range(3)]),
        _values([nic(str(one), one == 0, ip_configurations(1, ref(NODES)["id"])) for one in range(2)]),
    ),
    "networkInterfaces": (
        _values([ref(f"{NET}/networkInterfaces/{one}") for one in range(3)]),
        _values([ref(f"{NET}/networkInterfaces/{one}") for one in range(2)]),
    ),
    "description": (_values("x" * 141), _values("x" * 140)),
    **{f"{side}AddressPrefix": _PREFIX_CASES for side in SIDES},
    **{f"{side}AddressPrefixes tags": (_PREFIX_CASES[0], _values("10.0.0.0/8")) for side in SIDES},
    **{f"{side}AddressPrefixes": (_values("*", "Internet", "Storage"), _values("10.0.0.0/8", "10.0.0.1")) for side in SIDES},
    **{f"{side}{name}": _PORT_CASES for side in SIDES for name in ("PortRange", "PortRanges")},
    "rule ports": (
        _values({"frontendPort": 65_535}, {"backendPort": 65_536}, {"frontendPort": 0}, {"protocol": "All"}),
        _values({"frontendPort": 65_534, "backendPort": 65_535}, {"protocol": "All", "frontendPort": 0, "backendPort": 0}),
    ),
    "probe port": (_values(*({"port": one} for one in (0, 65_536))), _values({"port": 1}, {"port": 65_535})),
    "probe requestPath": (
        _values({"protocol": "Http"}, {"protocol": "Tcp", "requestPath": "/healthz"}),
        _values({"protocol": "Http", "requestPath": "/healthz"}, {"protocol": "Tcp"}),
    ),
    "allocatedOutboundPorts": (_values(-8, 7, 64_008), _values(0, 8, 64_000)),
    "prefixLength": (
        _values(*({"prefixLength": one} for one in (27, 32, 0))),
        _values({"prefixLength": 28}, {"prefixLength": 31}, {"prefixLength": 124, "publicIPAddressVersion": "IPv6"}),
    ),
    "addressPrefixes": (_values("127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4"), _values("10.0.0.0/8", "100.64.0.0/10", "192.168.0.0/16")),
    "addressPrefixes size": (_values("0.0.0.0/1", "10.0.0.0/30", "10.0.0.0/32"), _values("64.0.0.0/2", "10.0.0.0/29", "fd00::/48")),
    "route addressPrefix": (_values("Nonsense", "10.0.0.0/33", "10.0.0"), _values("10.0.0.0/8", "Storage.WestUS", "0.0.0.0/0")),
    "storage ip rule": (
        _values("10.0.0.1", "192.168.0.0/24", "20.0.0.0/31", "20.0.0.1/24", "nonsense"),
        _values("20.0.0.1", "20.0.0.0/30", "2001:db8::/32"),
    ),
    "vault ip rule": (_values("300.0.0.1", "20.0.0.1/24", "nonsense"), _values("20.0.0.1", "20.0.0.0/24", "20.0.0.1/32")),
    "dnsServers": (_values("10.0.0", "dns.example.org"), _values("10.0.0.4", "AzureProvidedDNS")),
    "nextHopIpAddress": (_values("10.0.0", "hub"), _values("10.0.0.4")),
    "accessPolicies": (_values([{"tenantId": "t", "objectId": "o", "permissions": {}}] * 1_025), _values([])),
    "networkAcls.virtualNetworkRules": (_values([ref(NODES)] * 201), _values([ref(NODES)] * 200)),
    "networkAcls.ipRules": (_values([{"value": "20.0.0.1"}] * 1_001), _values([{"value": "20.0.0.1"}] * 1_000)),
    "storage networkAcls.virtualNetworkRules": (_values([ref(NODES)] * 401), _values([ref(NODES)] * 400)),
    "storage networkAcls.ipRules": (_values([{"value": "20.0.0.1"}] * 401), _values([{"value": "20.0.0.1"}] * 400)),
    **{
        f"{name}.days": (
            _values({"enabled": True, "days": 0}, {"enabled": False, "days": 366}, {"enabled": True}),
            _values({"enabled": True, "days": 1}, {"enabled": True, "days": 365}, {"enabled": False}),
        )
        for name in ("deleteRetentionPolicy", "containerDeleteRetentionPolicy")
    },
    **{f"credential {name}": (_values("x" * 601), _values("x" * 600)) for name in ("issuer", "subject")},
    "notes": (_values("x" * 513), _values("x" * 512)),
}
"""Values that break a row and values at its bounds that do not, by the row's key; rows of ranges and patterns need none."""

_CHARACTERS = st.characters(codec="utf-8", exclude_characters="/", exclude_categories=["Cs", "Cc"])


def cases_of(row: Restriction) -> tuple[st.SearchStrategy[Case], st.SearchStrategy[Case]]:
    """Return the values that break a row, and the values that do not."""
    match row.rule:
        case Between(low, high) if row.key not in VALUES:
            outside = st.integers(max_value=low - 1) | st.integers(min_value=high + 1)
            broken = outside.filter(lambda one: abs(one) < 2**62) | st.sampled_from([low - 1, high + 1])
            return broken.map(Case), (st.sampled_from([low, high]) | st.integers(low, high)).map(Case)
        case Matches() if row.key not in VALUES:
            matching = st.from_regex(row.rule.compiled, fullmatch=True).filter(lambda one: "/" not in one and not one.endswith("\n"))
            near = matching.flatmap(lambda one: st.sampled_from([f"{one}!", f"-{one}", f"{one}-", one * 300, f"{one} x", "."]))
            wrong = (st.text(_CHARACTERS, min_size=1, max_size=20) | near).filter(
                lambda one: not row.rule.compiled.fullmatch(one) and not PLACEHOLDER.fullmatch(one)
            )
            return wrong.map(Case), matching.map(Case)
        case _:
            return VALUES[row.key]
