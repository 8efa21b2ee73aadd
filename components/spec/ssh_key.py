"""Validation of SSH public keys: the types that Azure accepts, and keys that decode."""

from __future__ import annotations

import base64
import binascii
import re

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

KEY_TYPES = ("ssh-ed25519", "ssh-rsa")
"""Types that Azure accepts for Linux machines: https://learn.microsoft.com/azure/virtual-machines/linux/mac-create-ssh-keys"""
MIN_RSA_BITS = 2_048
"""Minimum length of an RSA key, from the same page."""
PASTE = "paste the line of the .pub file (ssh-keygen -y -f KEY prints it)"
NEW_KEY = "create a key with ssh-keygen -t ed25519, and paste the line of its .pub file"
LABEL = re.compile(r"(ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+")
SECOND_KEY = re.compile(r"\s(ssh|ecdsa|sk-ssh|sk-ecdsa)-\S+ AAAA")


def ssh_public_key(value: str) -> str:
    """Return the value if it is an OpenSSH public key (type, base64, optional comment) that Azure accepts; otherwise raise ValueError."""
    if "PRIVATE KEY" in value:
        raise ValueError(f"is a private key, which must not be in this file; {PASTE}")
    if "BEGIN SSH2 PUBLIC KEY" in value or "BEGIN PUBLIC KEY" in value or "BEGIN RSA PUBLIC KEY" in value:
        raise ValueError(f"is a public key in another format than OpenSSH's; {PASTE}")
    label, _, rest = value.partition(" ")
    if value.startswith(("~", "/", "./")) or (value.endswith(".pub") and not rest):
        raise ValueError(f"is a path, not a key; {PASTE}")
    if not LABEL.fullmatch(label):
        raise ValueError(f"does not start with {' or '.join(KEY_TYPES)}, so it is no OpenSSH public key; {PASTE}")
    if label not in KEY_TYPES:
        raise ValueError(f"has the type {label}, but Azure accepts {' and '.join(KEY_TYPES)}; {NEW_KEY}")
    if SECOND_KEY.search(rest):
        raise ValueError("contains two keys; write one of them")
    if "\n" in value or "\r" in value:
        raise ValueError(f"has more than one line; {PASTE}")
    encoded = rest.split(" ")[0]
    if not encoded:
        raise ValueError(f"has no key after {label}; {PASTE}")
    _validate(label, encoded)
    return value


def _validate(label: str, encoded: str) -> None:
    """Raise ValueError if the base64 part is not a complete key of the label's type."""
    if wrong := re.search(r"[^A-Za-z0-9+/=]", encoded):
        raise ValueError(f"contains {wrong[0]!r} in the key, which is no base64 character; {PASTE}")
    try:
        decoded = base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise ValueError(f"has a key of {len(encoded)} characters, which is truncated or altered; {PASTE}") from error
    kind = decoded[4 : 4 + int.from_bytes(decoded[:4], "big")].decode("ascii", errors="replace")
    if kind in KEY_TYPES and kind != label:
        raise ValueError(f"is labelled {label}, but contains a key of type {kind}; write {kind}, or {PASTE}")
    if kind == label and not _is_complete(decoded):
        raise ValueError(f"is truncated: the key ends after {len(decoded)} bytes, within a field; {PASTE}")
    try:
        key = load_ssh_public_key(f"{label} {encoded}".encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"does not contain a key of type {label}; {PASTE}") from error
    if isinstance(key, RSAPublicKey) and key.key_size < MIN_RSA_BITS:
        raise ValueError(f"is an RSA key of {key.key_size} bits, but Azure accepts {MIN_RSA_BITS} or more; {NEW_KEY}")


def _is_complete(decoded: bytes) -> bool:
    """Return False if a field of a decoded key is longer than the bytes that remain, or if a field is missing."""
    fields = 0
    while decoded:
        length = int.from_bytes(decoded[:4], "big")
        if len(decoded) < 4 + length or len(decoded) < 4:
            return False
        decoded, fields = decoded[4 + length :], fields + 1
    return fields >= 2
