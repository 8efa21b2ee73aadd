import base64
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import Criticality, ExtensionPolicy, PolicyBuilder, Store, VerificationError
from region_graphs import REGIONS, ground_graph, planned

from components.pki_certificates import certificates_of
from components.plan.model import ClusterPlan
from components.x509 import Subject
from rehearsal.program.graph import MASK, Secret, reveal

WRITTEN = "azure-native:keyvault:Secret"
USAGES = {ExtendedKeyUsageOID.SERVER_AUTH: "server", ExtendedKeyUsageOID.CLIENT_AUTH: "client"}


def secrets_of(region: str, cluster: ClusterPlan) -> Mapping[str, str]:
    """A cluster's secrets, shown, by "vault role/name"."""
    secrets: Mapping[str, str] = reveal(ground_graph(region).stack_outputs[cluster.name])["secrets"]
    return secrets


def pair_of(secrets: Mapping[str, str], name: str) -> tuple[str, str]:
    """Certificate and key of a leaf, PEM."""
    vault = "etcd" if f"etcd/{name}-cert" in secrets else "control"
    return secrets[f"{vault}/{name}-cert"], secrets[f"{vault}/{name}-key"]


def load(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem.encode())


def trusting(authority: str) -> PolicyBuilder:
    """Trusts one authority only."""
    return PolicyBuilder().store(Store([load(authority)])).time(datetime.now(UTC))


def verify_client(authority: str, certificate: x509.Certificate) -> None:
    """Verify a client as Kubernetes and etcd do, which take clients without alternative names."""
    leaf = ExtensionPolicy.webpki_defaults_ee().may_be_present(x509.SubjectAlternativeName, Criticality.AGNOSTIC, None)
    policies = trusting(authority).extension_policies(ca_policy=ExtensionPolicy.webpki_defaults_ca(), ee_policy=leaf)
    policies.build_client_verifier().verify(certificate, [])


def subject_of(certificate: x509.Certificate) -> Subject:
    """Return the subject of a certificate."""
    names, extensions = certificate.subject, certificate.extensions
    try:
        alternative = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        alternative = x509.SubjectAlternativeName([])
    usages = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    return Subject(
        common_name=str(names.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value),
        organizations=tuple(str(item.value) for item in names.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)),
        dns_names=tuple(alternative.get_values_for_type(x509.DNSName)),
        addresses=tuple(str(item) for item in alternative.get_values_for_type(x509.IPAddress)),
        usages=tuple(USAGES[usage] for usage in usages),
    )


@pytest.mark.parametrize("region", REGIONS)
def test_the_vaults_get_exactly_the_secrets_that_the_plan_names(region: str) -> None:
    expected = [(vault.name, secret) for cluster in planned(region).clusters for vault in cluster.vaults for secret in vault.secrets]
    written = ground_graph(region).of_type(WRITTEN)
    assert sorted((item.inputs["vaultName"], item.inputs["secretName"]) for item in written) == sorted(expected)
    for cluster in planned(region).clusters:
        values = secrets_of(region, cluster)
        assert set(values) == {f"{vault.role}/{secret}" for vault in cluster.vaults for secret in vault.secrets}
        own = {
            item.inputs["vaultName"]: vault.role for vault in cluster.vaults for item in written if item.inputs["vaultName"] == vault.name
        }
        for item in written:
            if item.inputs["vaultName"] in own:
                key = f"{own[item.inputs['vaultName']]}/{item.inputs['secretName']}"
                assert reveal(item.inputs["properties"])["value"] == values[key]


@pytest.mark.parametrize("region", REGIONS)
def test_every_certificate_s_chain_holds_for_what_it_is_used_for(region: str) -> None:
    for cluster in planned(region).clusters:
        secrets = secrets_of(region, cluster)
        for leaf in certificates_of(cluster):
            authority = secrets[f"control/{leaf.authority}-ca-cert"]
            certificate = load(pair_of(secrets, leaf.name)[0])
            names = [x509.DNSName(name) for name in leaf.subject.dns_names]
            addresses = [x509.IPAddress(IPv4Address(address)) for address in leaf.subject.addresses]
            if "client" in leaf.subject.usages:
                verify_client(authority, certificate)
            if "server" in leaf.subject.usages:
                for server in (*names, *addresses):
                    trusting(authority).build_server_verifier(server).verify(certificate, [])


def test_a_certificate_is_nobody_under_another_authority_and_another_usage() -> None:
    secrets = secrets_of("dev", planned("dev").clusters[0])
    events_client, api_server = load(secrets["control/events-client-cert"]), load(secrets["control/apiserver-cert"])
    with pytest.raises(VerificationError):
        verify_client(secrets["control/etcd-ca-cert"], events_client)
    with pytest.raises(VerificationError):
        verify_client(secrets["control/cluster-ca-cert"], api_server)


@pytest.mark.parametrize("region", REGIONS)
def test_certificates_say_who_they_stand_for_and_their_keys_fit(region: str) -> None:
    for cluster in planned(region).clusters:
        secrets = secrets_of(region, cluster)
        for leaf in certificates_of(cluster):
            certificate, key = pair_of(secrets, leaf.name)
            private = serialization.load_pem_private_key(key.encode(), password=None)
            assert subject_of(load(certificate)) == leaf.subject
            assert private.public_key() == load(certificate).public_key()
        authority = serialization.load_pem_private_key(secrets["control/cluster-ca-key"].encode(), password=None)
        assert authority.public_key() == load(secrets["node/cluster-ca-cert"]).public_key()


def test_the_api_servers_answer_under_every_name_and_address_that_anyone_calls() -> None:
    cluster = planned("southcentralus").clusters[0]
    plan = cluster.api_servers
    subject = subject_of(load(secrets_of("southcentralus", cluster)["control/apiserver-cert"]))
    services = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]
    assert set(subject.dns_names) == {plan.dns_name, "localhost", *services}
    assert plan.endpoint_address is not None
    assert set(subject.addresses) == {plan.address, plan.endpoint_address, cluster.network.kubernetes_service_address, "127.0.0.1"}


def test_users_and_groups_are_those_that_kubernetes_gives_rights_to() -> None:
    secrets = secrets_of("dev", planned("dev").clusters[0])
    clients = {
        name: subject_of(load(secrets[f"control/{name}-cert"])) for name in ("admin", "controller-manager", "scheduler", "csr-approver")
    }
    assert {name: (client.common_name, client.organizations) for name, client in clients.items()} == {
        "admin": ("gpufleet-break-glass", ("system:masters",)),
        "controller-manager": ("system:kube-controller-manager", ()),
        "scheduler": ("system:kube-scheduler", ()),
        "csr-approver": ("system:gpufleet:csr-approver", ()),
    }


def test_an_etcd_member_and_an_api_server_shake_hands(tmp_path: Path) -> None:
    secrets = secrets_of("dev", planned("dev").clusters[0])
    member = planned("dev").clusters[0].etcd.members[0]
    paths = {}
    for name in ("etcd-0", "etcd-client"):
        paths[name] = tmp_path / f"{name}.pem"
        paths[name].write_text("".join(pair_of(secrets, name)))
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context, name in ((server, "etcd-0"), (client, "etcd-client")):
        context.load_cert_chain(paths[name])
        context.load_verify_locations(cadata=secrets["etcd/etcd-ca-cert"])
    server.verify_mode = ssl.CERT_REQUIRED
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(to_client, to_server, server_hostname=member.dns_name), server.wrap_bio(to_server, to_client, server_side=True)]
    for _ in range(3):
        for end in ends:
            shake(end)
    assert ends[0].version() == "TLSv1.3"
    assert dict(part[0] for part in ends[1].getpeercert()["subject"]) == {"commonName": "kube-apiserver-etcd-client"}  # type: ignore[index, union-attr]


def shake(end: ssl.SSLObject) -> None:
    """Continue a handshake with the received data."""
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return


@pytest.mark.parametrize("region", REGIONS)
def test_no_key_token_or_secret_shows_in_the_state(region: str) -> None:
    graph = ground_graph(region)
    public = ("-ca-cert", "-cert", "-public-key")
    text = graph.to_json()
    for cluster in planned(region).clusters:
        secrets = secrets_of(region, cluster)
        kubeconfig = reveal(graph.stack_outputs[cluster.name])["kubeconfig"]
        hidden = {value for name, value in secrets.items() if not name.endswith((*public, "bootstrap-token"))}
        hidden.add(yaml.safe_load(kubeconfig)["users"][0]["user"]["client-key-data"])
        for value in hidden:
            # The last lines of a private key in PEM are its public half.
            assert value.splitlines()[1 if "PRIVATE KEY" in value else 0] not in text
    assert "PRIVATE KEY" not in text
    for item in graph.of_type(WRITTEN):
        assert isinstance(item.inputs["properties"]["value"], Secret)
    assert f'"value": "{MASK}"' in text


def test_the_kubeconfig_leads_break_glass_to_the_api_servers() -> None:
    cluster = planned("dev").clusters[0]
    exported = reveal(ground_graph("dev").stack_outputs[cluster.name])
    config = yaml.safe_load(exported["kubeconfig"])
    (entry,), (user,) = config["clusters"], config["users"]
    assert entry["cluster"]["server"] == f"https://{cluster.api_servers.dns_name}:6443"
    decoded = [base64.b64decode(user["user"][key]).decode() for key in ("client-certificate-data", "client-key-data")]
    assert tuple(decoded) == pair_of(exported["secrets"], "admin")
    assert (
        base64.b64decode(entry["cluster"]["certificate-authority-data"]).decode()
        == exported["ca"]
        == exported["secrets"]["node/cluster-ca-cert"]
    )
    assert config["current-context"] == config["contexts"][0]["name"]
    assert config["contexts"][0]["context"] == {"cluster": entry["name"], "user": user["name"]}


def test_bare_keys_have_the_form_that_kubernetes_reads() -> None:
    cluster = planned("dev").clusters[0]
    secrets = secrets_of("dev", cluster)
    # The approver writes the first token.
    assert secrets["node/bootstrap-token"] == "none"
    assert len(base64.b64decode(secrets["control/encryption-key"], validate=True)) == 32
    private = serialization.load_pem_private_key(secrets["control/service-account-key"].encode(), password=None)
    public = serialization.load_pem_public_key(secrets["control/service-account-public-key"].encode())
    assert private.public_key() == public


def test_clusters_share_no_key() -> None:
    clusters = planned("southcentralus").clusters
    keys = [value for cluster in clusters for name, value in secrets_of("southcentralus", cluster).items() if name.endswith("-key")]
    assert len(set(keys)) == len(keys)
