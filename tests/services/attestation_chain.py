"""A chain that signs attested data, and documents of machines of the tests."""

from __future__ import annotations

import datetime
from functools import cache

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from rehearsal.arm import attested_data as model
from services.csr_approver.attested_data import Trust, nonce_of

NOW = datetime.datetime(2026, 11, 24, 12, tzinfo=datetime.UTC)
SUBSCRIPTION = "5ab0f5d6-9b4e-4b4c-9d7e-0a1b2c3d4e5f"
VM_ID = "11111111-2222-3333-4444-555555555555"
KEY = ec.derive_private_key(7, ec.SECP256R1())
OTHER_KEY = ec.derive_private_key(11, ec.SECP256R1())
DER = serialization.Encoding.DER


@cache
def signer(name: str = model.SIGNER, issuer_url: str = model.ISSUER_URL, label: str = "") -> model.Signer:
    """Return a chain; another label gives another chain."""
    assert label is not None
    return model.create(NOW, name, issuer_url)


def trust(chain: model.Signer | None = None) -> Trust:
    """Return the trust in a chain's root."""
    return Trust(((chain or signer()).root,))


def content(
    vm_id: str = VM_ID,
    subscription: str = SUBSCRIPTION,
    key: ec.EllipticCurvePrivateKey = KEY,
    created: datetime.datetime = NOW,
) -> bytes:
    """Return the JSON that Azure signs for a machine and a key."""
    compute = {"vmId": vm_id, "subscriptionId": subscription, "plan": {}, "sku": ""}
    return model.content(compute, nonce_of(key.public_key()), created.timestamp())


def document(chain: model.Signer | None = None, text: bytes | None = None) -> bytes:
    """Return a signed document."""
    return (chain or signer()).sign(content() if text is None else text)
