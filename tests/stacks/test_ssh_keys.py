"""SSH public keys of a region file: those that Azure accepts, and the error for each other."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from drafts import DOCUMENTS, TEXTS, problems

from components.spec.ssh_key import ssh_public_key

KEY = DOCUMENTS["dev"]["access"]["ssh_public_key"]
LABEL, CODE, _ = KEY.split()
PASTE = "paste the line of the .pub file (ssh-keygen -y -f KEY prints it)"
NEW_KEY = "create a key with ssh-keygen -t ed25519, and paste the line of its .pub file"


def rsa_key(bits: int) -> str:
    """A new RSA key in OpenSSH's form."""
    return rsa.generate_private_key(65537, bits).public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


ELLIPTIC = ec.generate_private_key(ec.SECP256R1()).public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
WRONG = [
    (f"{LABEL} {CODE[:-8]} cut", f"is truncated: the key ends after 45 bytes, within a field; {PASTE}"),
    (f"{LABEL} {CODE[:-7]} cut", f"has a key of 61 characters, which is truncated or altered; {PASTE}"),
    (f"{LABEL} {CODE[:20]}_{CODE[21:]}", f"contains '_' in the key, which is no base64 character; {PASTE}"),
    (f"{LABEL} {base64.b64encode(bytes(51)).decode()}", f"does not contain a key of type ssh-ed25519; {PASTE}"),
    (f"ssh-rsa {CODE}", f"is labelled ssh-rsa, but contains a key of type ssh-ed25519; write ssh-ed25519, or {PASTE}"),
    (rsa_key(1024), f"is an RSA key of 1024 bits, but Azure accepts 2048 or more; {NEW_KEY}"),
    (ELLIPTIC, f"has the type ecdsa-sha2-nistp256, but Azure accepts ssh-ed25519 and ssh-rsa; {NEW_KEY}"),
    (f"{KEY} {KEY}", "contains two keys; write one of them"),
    (LABEL, f"has no key after ssh-ed25519; {PASTE}"),
    (f"{KEY}\n", f"has more than one line; {PASTE}"),
    ("~/.ssh/id_ed25519.pub", f"is a path, not a key; {PASTE}"),
    (CODE, f"does not start with ssh-ed25519 or ssh-rsa, so it is no OpenSSH public key; {PASTE}"),
    ("-----BEGIN PUBLIC KEY-----", f"is a public key in another format than OpenSSH's; {PASTE}"),
]


@pytest.mark.parametrize(
    "key", [KEY, f"{LABEL} {CODE}", f"{KEY} of the fleet", rsa_key(2048)], ids=["with comment", "without comment", "with spaces", "RSA"]
)
def test_a_key_that_azure_accepts_is_accepted(key: str) -> None:
    assert ssh_public_key(key) == key


@pytest.mark.parametrize(("key", "message"), WRONG, ids=[message.partition(";")[0][:40] for _, message in WRONG])
def test_an_invalid_key_is_refused_with_its_fault_and_a_remedy(key: str, message: str) -> None:
    with pytest.raises(ValueError, match="; ") as refused:
        ssh_public_key(key)
    assert str(refused.value) == message


def test_a_private_key_is_refused_and_not_repeated(tmp_path: Path) -> None:
    (line,) = problems(tmp_path, TEXTS["dev"].replace(KEY, '"-----BEGIN PRIVATE KEY----- MC4CAQAw"'), "dev")
    assert line == f"dev.yaml:12: access.ssh_public_key: '… PRIVATE KEY …' is a private key, which must not be in this file; {PASTE}"
