"""Attested data: what Azure signs is accepted, and nothing else, however it is put together."""

from __future__ import annotations

import base64
import datetime
from dataclasses import replace

import attestation_chain as made
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import pkcs7
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal.arm import attested_data as model
from services.csr_approver import attested_data
from services.csr_approver.attestation_trust import ROOTS, azure_roots
from services.csr_approver.attested_data import AttestedMachine, DocumentRefusedError, Trust

PEM = serialization.Encoding.PEM
GENUINE = made.document()
PUBLISHED = base64.b64decode(
    "MIIEEgYJKoZIhvcNAQcCoIIEAzCCA/8CAQExDzANBgkqhkiG9w0BAQsFADCBugYJKoZIhvcNAQcBoIGsBIGpeyJub25jZSI6IjEyMzQ1NjY3NjYiLCJwbGFuIjp7Im5hbWUi"
    "OiIiLCJwcm9kdWN0IjoiIiwicHVibGlzaGVyIjoiIn0sInRpbWVTdGFtcCI6eyJjcmVhdGVkT24iOiIxMS8yMC8xOCAyMjowNzozOSAtMDAwMCIsImV4cGlyZXNPbiI6IjEx"
    "LzIwLzE4IDIyOjA4OjI0IC0wMDAwIn0sInZtSWQiOiIifaCCAj8wggI7MIIBpKADAgECAhBnxW5Kh8dslEBA0E2mIBJ0MA0GCSqGSIb3DQEBBAUAMCsxKTAnBgNVBAMTIHRl"
    "c3RzdWJkb21haW4ubWV0YWRhdGEuYXp1cmUuY29tMB4XDTE4MTEyMDIxNTc1N1oXDTE4MTIyMDIxNTc1NlowKzEpMCcGA1UEAxMgdGVzdHN1YmRvbWFpbi5tZXRhZGF0YS5h"
    "enVyZS5jb20wgZ8wDQYJKoZIhvcNAQEBBQADgY0AMIGJAoGBAML/tBo86ENWPzmXZ0kPkX5dY5QZ150mA8lommszE71x2sCLonzv4/UWk4H+jMMWRRwIea2CuQ5RhdWAHvKq"
    "6if4okKNt66fxm+YTVz9z0CTfCLmLT+nsdfOAsG1xZppEapC0Cd9vD6NCKyE8aYI1pliaeOnFjG0WvMY04uWz2MdAgMBAAGjYDBeMFwGA1UdAQRVMFOAENnYkHLa04Ut4Mpt"
    "7TkJFfyhLTArMSkwJwYDVQQDEyB0ZXN0c3ViZG9tYWluLm1ldGFkYXRhLmF6dXJlLmNvbYIQZ8VuSofHbJRAQNBNpiASdDANBgkqhkiG9w0BAQQFAAOBgQCLSM6aX5Bs1KHC"
    "Jp4VQtxZPzXF71rVKCocHy3N9PTJQ9Fpnd+bYw2vSpQHg/AiG82WuDFpPReJvr7Pa938mZqW9HUOGjQKK2FYDTg6fXD8pkPdyghlX5boGWAMMrf7bFkup+lsT+n2tRw2wbNk"
    "nO1tQ0wICtqy2VqzWwLi45RBwTGB6DCB5QIBATA/MCsxKTAnBgNVBAMTIHRlc3RzdWJkb21haW4ubWV0YWRhdGEuYXp1cmUuY29tAhBnxW5Kh8dslEBA0E2mIBJ0MA0GCSqG"
    "SIb3DQEBCwUAMA0GCSqGSIb3DQEBAQUABIGAld1BM/yYIqqv8SDE4kjQo3Ul/IKAVR8ETKcve5BAdGSNkTUooUGVniTXeuvDj5NkmazOaKZp9fEtByqqPOyw/nlXaZgOO44H"
    "DGiPUJ90xVYmfeK6p9RpJBu6kiKhnnYTelUk5u75phe5ZbMZfBhuPhXmYAdjc7Nmw97nx8NnprQ="
)
"""Microsoft's published example, with a key of 1,024 bits:
https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service#attested-data"""


def verify(document: bytes, trust: Trust | None = None, now: datetime.datetime = made.NOW) -> AttestedMachine:
    return attested_data.verify(document, trust or made.trust(), now)


def refusal(document: bytes, trust: Trust | None = None, now: datetime.datetime = made.NOW) -> str:
    """Return why a document is refused."""
    with pytest.raises(DocumentRefusedError) as refused:
        verify(document, trust, now)
    return str(refused.value)


def signed(
    chain: model.Signer, text: bytes, others: tuple[x509.Certificate, ...] = (), options: tuple[pkcs7.PKCS7Options, ...] = ()
) -> bytes:
    """Return a document with signed attributes unless the options leave them out."""
    builder = pkcs7.PKCS7SignatureBuilder().set_data(text).add_signer(chain.certificate, chain.key, hashes.SHA256())
    for one in others:
        builder = builder.add_certificate(one)
    return builder.sign(serialization.Encoding.DER, [pkcs7.PKCS7Options.Binary, *options])


def test_what_azure_signs_is_read() -> None:
    expected = AttestedMachine(
        made.VM_ID, made.SUBSCRIPTION, attested_data.nonce_of(made.KEY.public_key()), made.NOW, made.NOW + datetime.timedelta(hours=6)
    )
    assert verify(GENUINE) == expected
    assert verify(signed(made.signer(), made.content(), (made.signer().issuer,))) == expected


def test_a_nonce_is_32_letters_and_digits_of_one_key() -> None:
    nonce = attested_data.nonce_of(made.KEY.public_key())
    assert len(nonce) == 32
    assert nonce.isalnum()
    assert nonce != attested_data.nonce_of(made.OTHER_KEY.public_key())


def test_microsofts_example_is_read_up_to_its_key_which_is_too_short(monkeypatch: pytest.MonkeyPatch) -> None:
    when = datetime.datetime(2018, 11, 20, 22, 8, tzinfo=datetime.UTC)
    assert "neither RSA of at least 2048 bits" in refusal(PUBLISHED, now=when)
    monkeypatch.setattr(attested_data, "RSA_BITS", 1_024)
    read = attested_data.read(PUBLISHED)
    assert read.signer.subject.rfc4514_string() == "CN=testsubdomain.metadata.azure.com"
    assert b'"nonce":"1234566766"' in read.content
    with pytest.raises(DocumentRefusedError, match="not that of the certificate"):
        attested_data.read(PUBLISHED[:-1] + b"\x00")


def test_a_genuine_certificate_that_has_not_signed_proves_nothing() -> None:
    stranger, genuine = made.signer(label="stranger"), made.signer()
    forged = signed(stranger, made.content(), (stranger.issuer, genuine.certificate, genuine.issuer, genuine.root))
    assert "no valid chain to a trusted root" in refusal(forged)
    # Placed first, as in https://github.com/spiffe/spire/pull/6960.
    bag = attested_data.read(forged).certificates
    in_front = [genuine.certificate, *(one for one in bag if one != genuine.certificate)]
    first = forged.replace(*(b"".join(one.public_bytes(made.DER) for one in order) for order in (bag, in_front)))
    assert attested_data.read(first).certificates[0] == genuine.certificate
    assert attested_data.read(first).signer == stranger.certificate
    assert "no valid chain to a trusted root" in refusal(first)


def test_a_signature_of_another_key_under_the_signers_name_is_refused() -> None:
    genuine = made.signer()
    other = replace(made.signer(label="other"), certificate=genuine.certificate)
    # The library refuses a key that is not the certificate's, so the signature is put in place afterwards.
    assert isinstance(other.key, rsa.RSAPrivateKey)
    assert isinstance(genuine.key, rsa.RSAPrivateKey)
    theirs, ours = (key.sign(made.content(), padding.PKCS1v15(), hashes.SHA256()) for key in (other.key, genuine.key))
    assert GENUINE.count(ours) == 1
    assert "not that of the certificate" in refusal(GENUINE.replace(ours, theirs))


def test_other_content_under_the_signature_or_its_attributes_is_refused() -> None:
    changed = made.content(vm_id="99999999-2222-3333-4444-555555555555")
    assert "not that of the certificate" in refusal(GENUINE.replace(made.content(), changed))
    with_attributes = signed(made.signer(), made.content(), (made.signer().issuer,))
    assert "signed attributes are not those of its content" in refusal(with_attributes.replace(made.content(), changed))


@pytest.mark.parametrize("name", ["metadata.azure.com", "westus.metadata.azure.com", "*.metadata.azure.com"])
def test_a_signer_of_the_metadata_service_or_below_it_is_accepted(name: str) -> None:
    chain = made.signer(name)
    assert verify(made.document(chain), made.trust(chain)).vm_id == made.VM_ID


@pytest.mark.parametrize(
    "name", ["metadata.azure.com.example.org", "evilmetadata.azure.com", "management.azure.com", "metadata.azure.us", "*.azure.com"]
)
def test_a_signer_with_another_name_is_refused_although_its_chain_is_good(name: str) -> None:
    chain = made.signer(name)
    assert "not by metadata.azure.com" in refusal(made.document(chain), made.trust(chain))


def test_another_root_is_refused_and_a_new_one_accepted_beside_the_old() -> None:
    new = made.signer(label="new root")
    assert "no valid chain to a trusted root" in refusal(made.document(new))
    both = Trust((made.signer().root, new.root))
    assert verify(made.document(new), both) == verify(GENUINE, both)


@pytest.mark.parametrize(
    ("shift", "why"),
    [
        (datetime.timedelta(hours=-7), "expired at"),
        (datetime.timedelta(minutes=6), "created in the future"),
    ],
)
def test_a_document_of_another_time_is_refused(shift: datetime.timedelta, why: str) -> None:
    assert why in refusal(made.document(text=made.content(created=made.NOW + shift)))


def test_a_chain_that_has_ended_is_refused() -> None:
    later = made.NOW + datetime.timedelta(days=400)
    assert "no valid chain" in refusal(made.document(text=made.content(created=later)), now=later)


def test_a_document_that_is_valid_for_days_is_refused() -> None:
    text = made.content().replace(b"11/24/26 18:00:00", b"11/26/26 18:00:00")
    assert "valid for longer than 24 hours" in refusal(made.document(text=text))


@pytest.mark.parametrize("field", [b'"vmId"', b'"subscriptionId"', b'"nonce"', b'"timeStamp"', b'"createdOn"'])
def test_a_document_without_a_field_is_refused(field: bytes) -> None:
    assert "lacks a field" in refusal(made.document(text=made.content().replace(field, b'"else"')))


def test_a_machine_may_send_an_issuer_that_the_document_lacks() -> None:
    chain = made.signer()
    alone = chain.sign(made.content(), ())
    assert "no valid chain to a trusted root" in refusal(alone)
    issuers = chain.issuer.public_bytes(PEM)
    assert attested_data.verify(alone, made.trust(), made.NOW, issuers).vm_id == made.VM_ID


def test_an_issuer_that_a_machine_sends_is_not_trusted_by_itself() -> None:
    stranger = made.signer(label="stranger")
    for issuers in (stranger.issuer, stranger.root):
        with pytest.raises(DocumentRefusedError, match="no valid chain to a trusted root"):
            attested_data.verify(made.document(stranger), made.trust(), made.NOW, issuers.public_bytes(PEM))


def test_unreadable_or_too_many_issuers_are_refused() -> None:
    for issuers in (b"x" * 40_000, b"no certificate", made.signer().issuer.public_bytes(PEM) * 11):
        with pytest.raises(DocumentRefusedError):
            attested_data.verify(made.document(), made.trust(), made.NOW, issuers)


def test_azures_roots_are_those_of_the_table() -> None:
    found = {one.fingerprint(hashes.SHA256()).hex(): one.subject.rfc4514_string() for one in azure_roots().roots}
    assert found.keys() == ROOTS.keys()
    assert all(ROOTS[digest] in subject for digest, subject in found.items())


def test_a_document_with_two_signatures_or_none_is_refused() -> None:
    builder = pkcs7.PKCS7SignatureBuilder().set_data(made.content())
    for chain in (made.signer(), made.signer(label="stranger")):
        builder = builder.add_signer(chain.certificate, chain.key, hashes.SHA256())
    assert "2 signatures" in refusal(builder.sign(serialization.Encoding.DER, [pkcs7.PKCS7Options.Binary]))
    bag = pkcs7.serialize_certificates([made.signer().certificate], serialization.Encoding.DER)
    assert refusal(bag)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused_and_never_a_fault(data: bytes) -> None:
    assert refusal(data)


@settings(max_examples=300)
@given(st.data())
def test_a_document_with_any_byte_changed_removed_or_added_proves_the_same_machine_or_nothing(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(GENUINE) - 1))
    kind = data.draw(st.sampled_from(("changed", "cut", "added")))
    other = data.draw(st.integers(0, 255))
    changed = {
        "changed": GENUINE[:place] + bytes([other]) + GENUINE[place + 1 :],
        "cut": GENUINE[:place],
        "added": GENUINE[:place] + bytes([other]) + GENUINE[place:],
    }[kind]
    try:
        found = verify(changed)
    except DocumentRefusedError:
        return
    # Fields that the signature does not cover, such as version numbers, may differ.
    assert found == verify(GENUINE)
