"""Operating system profiles of virtual machines and scale sets: user data, credentials, computer names and extensions.

https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update#osprofile
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from rehearsal.azure.resource import Json
from rehearsal.azure.restrictions.restriction import PLACEHOLDER, Fields, Restriction, Subject, Where

MACHINE, SCALE_SET = "Microsoft.Compute/virtualMachines", "Microsoft.Compute/virtualMachineScaleSets"
PROFILES = {MACHINE: "properties", SCALE_SET: "properties.virtualMachineProfile"}
DATA_CHARACTERS = 87_380
"""Base64 characters of 65,535 bytes."""
_REST = "https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update#osprofile"


def in_profile(place: str) -> dict[str, str]:
    """Return the place of a property of the machine profile, in a virtual machine and in a scale set."""
    return {kind: f"{profile}.{place}" for kind, profile in PROFILES.items()}


def profile_of(subject: Subject) -> Json:
    """Return the machine profile of a request, empty without one."""
    inner = subject.body.get("properties")
    inner = inner if isinstance(inner, Mapping) else {}
    found = inner.get("virtualMachineProfile") if subject.id.type.lower() == SCALE_SET.lower() else inner
    return dict(found) if isinstance(found, Mapping) else {}


def size_name(subject: Subject) -> str:
    """Return the VM size of a request as it is written, empty without one."""
    if subject.id.type.lower() == SCALE_SET.lower():
        return str((subject.body.get("sku") or {}).get("name") or "")
    return str((profile_of(subject).get("hardwareProfile") or {}).get("vmSize") or "")


def is_windows(profile: Json) -> bool:
    """Return whether a profile is known to be one of Windows."""
    os_profile, storage = profile.get("osProfile") or {}, profile.get("storageProfile") or {}
    if os_profile.get("windowsConfiguration") or os_profile.get("linuxConfiguration"):
        return bool(os_profile.get("windowsConfiguration"))
    if (os_type := (storage.get("osDisk") or {}).get("osType")) is not None:
        return str(os_type) == "Windows"
    return str((storage.get("imageReference") or {}).get("publisher") or "").startswith("MicrosoftWindows")


def _not_base64(value: Any, _subject: Subject) -> Fields | None:
    text = "".join(str(value).split())
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return {"value": f"{text[:20]}…"}
    return {"value": len(text)} if len(text) > DATA_CHARACTERS else None


def _keys(linux: Any) -> list[Json]:
    return ((linux.get("ssh") or {}).get("publicKeys") or []) if isinstance(linux, Mapping) else []


def _no_login(value: Any, _subject: Subject) -> Fields | None:
    """Refuse Linux without password authentication and without a key."""
    linux = value.get("linuxConfiguration")
    return {} if isinstance(linux, Mapping) and linux.get("disablePasswordAuthentication") and not _keys(linux) else None


def _no_password(value: Any, _subject: Subject) -> Fields | None:
    # Microsoft's examples with a placeholder as the user leave the password out.
    given = value.get("adminPassword") or _keys(value.get("linuxConfiguration")) or PLACEHOLDER.fullmatch(str(value.get("adminUsername")))
    return None if given else {}


def _no_user(value: Any, _subject: Subject) -> Fields | None:
    return {} if not value.get("adminUsername") else None


PASSWORD_CHARACTERS = {False: (6, 72), True: (8, 123)}
"""Least and most characters on Linux and on Windows."""
PASSWORD_CLASSES = (r"[A-Z]", r"[a-z]", r"\d", r"[\W_]")
FORBIDDEN_PASSWORDS = (
    "abc@123", "P@$$w0rd", "P@ssw0rd", "P@ssword123", "Pa$$word", "pass@word1", "Password!", "Password1", "Password22", "iloveyou!",
)  # fmt: skip


def _weak_password(value: Any, subject: Subject) -> Fields | None:
    text, (least, most) = str(value), PASSWORD_CHARACTERS[is_windows(profile_of(subject))]
    if PLACEHOLDER.fullmatch(text):
        return None
    classes = sum(1 for one in PASSWORD_CLASSES if re.search(one, text))
    valid = least <= len(text) <= most and classes >= 3 and not re.search(r"[\x00-\x1f\x7f]", text)
    return None if valid else {"least": least, "most": most}


def _known_password(value: Any, _subject: Subject) -> Fields | None:
    return {} if value in FORBIDDEN_PASSWORDS else None


RESERVED_USERS = (
    "administrator", "admin", "user", "user1", "test", "user2", "test1", "user3", "admin1", "1", "123", "a", "actuser", "adm", "admin2",
    "aspnet", "backup", "console", "david", "guest", "john", "owner", "root", "server", "sql", "support", "support_388945a0", "sys",
    "test2", "test3", "user4", "user5",
)  # fmt: skip
USER_CHARACTERS = {False: 64, True: 20}
_FORBIDDEN_IN_USER = re.compile(r'[\\/"\[\]:|<>+=;,?*@#()!&^%\s]')


def _bad_user(value: Any, subject: Subject) -> Fields | None:
    text, windows = str(value), is_windows(profile_of(subject))
    valid = (
        text.lower() not in RESERVED_USERS
        and len(text) <= USER_CHARACTERS[windows]
        and not _FORBIDDEN_IN_USER.search(text)
        and not text.endswith(".")
        and not text.startswith(("-", "$"))
    )
    return None if valid else {"value": text}


NAME_CHARACTERS = {False: 64, True: 15}
PREFIX_CHARACTERS = {False: 58, True: 9}
"""Azure appends six characters to the prefix of a scale set."""
_FORBIDDEN_IN_NAME = re.compile(r"[`~!@#$%^&*()=+_\[\]{}\\|;:'\",<>/?\s]|[^\x00-\x7f]")
_LISTED = "` ~ ! @ # $ % ^ & * ( ) = + _ [ ] {{ }} \\ | ; : ' \" , < > / ?"


def _bad_computer(most: Mapping[bool, int], windows: bool) -> Callable[[Any, Subject], Fields | None]:
    """Return the rule of a computer name, or of its prefix, on Windows or on Linux."""
    last = ("-", ".") if most is NAME_CHARACTERS else ()

    def broken(value: Any, subject: Subject) -> Fields | None:
        text = str(value)
        if is_windows(profile_of(subject)) != windows or PLACEHOLDER.fullmatch(text):
            return None
        malformed = _FORBIDDEN_IN_NAME.search(text) or text.startswith("-") or text.endswith(last)
        invalid = len(text) > most[windows] or malformed or (windows and (text.isdigit() or "." in text))
        return {"value": text} if invalid else None

    return broken


def _path(value: Any, subject: Subject) -> Fields | None:
    # The user of an existing machine cannot change, which its type refuses with another code.
    known = subject.previous.body if subject.previous is not None else subject.body
    user = str((profile_of(replace(subject, body=known)).get("osProfile") or {}).get("adminUsername") or "")
    expected = f"/home/{user}/.ssh/authorized_keys"
    return None if value == expected else {"value": value, "expected": expected}


RSA_BITS = 2_048


def _fields(blob: bytes) -> Iterator[bytes]:
    """Yield the length-prefixed fields of a public key: https://www.rfc-editor.org/rfc/rfc4253#section-6.6"""
    while blob:
        size = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + size:
            raise ValueError
        yield blob[4 : 4 + size]
        blob = blob[4 + size :]


def _bad_key(value: Any, _subject: Subject) -> Fields | None:
    """Refuse a key other than RSA of at least 2,048 bits or ed25519, in OpenSSH's form or in that of RFC 4716."""
    text = str(value).strip()
    if text.startswith("---- BEGIN SSH2 PUBLIC KEY"):
        lines = [line.strip() for line in text.splitlines()[1:-1]]
        kind, blob = "", "".join(line for line in lines if ":" not in line)
    else:
        kind, _, rest = text.partition(" ")
        blob = rest.split()[0] if rest.split() else ""
    try:
        parts = list(_fields(base64.b64decode(blob, validate=True)))
        name = parts[0].decode()
        strong = {
            "ssh-rsa": len(parts) == 3 and int.from_bytes(parts[2], "big").bit_length() >= RSA_BITS,
            "ssh-ed25519": len(parts) == 2 and len(parts[1]) == 32,
        }
        valid = strong.get(name, False) and kind in ("", name)
    except (binascii.Error, ValueError, IndexError):
        valid = False
    return None if valid else {"value": f"{text[:30]}…"}


def _repeated_extensions(value: Any, _subject: Subject) -> Fields | None:
    names = [str(one.get("name") or "").lower() for one in value if isinstance(one, Mapping)]
    twice = next((name for name in names if names.count(name) > 1), None)
    return None if twice is None else {"value": twice}


ROWS: tuple[Restriction, ...] = (
    Restriction(
        "customData",
        in_profile("osProfile.customData"),
        Where(f"base64 of at most {DATA_CHARACTERS:,} characters (65,535 bytes)", _not_base64),
        f"Custom data in OSProfile must be in Base64 encoding and with a maximum length of {DATA_CHARACTERS} characters.",
        "https://github.com/Azure/aks-engine/issues/1663",
    ),
    Restriction(
        "userData",
        in_profile("userData"),
        Where(f"base64 of at most {DATA_CHARACTERS:,} characters (65,535 bytes)", _not_base64),
        f"User data must be in Base64 encoding and with a maximum length of {DATA_CHARACTERS} characters.",
        "https://learn.microsoft.com/azure/virtual-machines/user-data",
        code_assumed=True,
    ),
    Restriction(
        "adminUsername missing",
        in_profile("osProfile"),
        Where("required", _no_user),
        "Required parameter 'adminUsername' is missing (null).",
        _REST,
        target="adminUsername",
        creation_only=True,
    ),
    Restriction(
        "linuxConfiguration",
        in_profile("osProfile"),
        Where("a key if disablePasswordAuthentication is true", _no_login),
        "Authentication using either SSH or by user name and password must be enabled in Linux profile.",
        "https://github.com/ComputeCanada/magic_castle/issues/44",
        creation_only=True,
    ),
    Restriction(
        "adminPassword missing",
        in_profile("osProfile"),
        Where("required without an SSH key", _no_password),
        "Required parameter 'adminPassword' is missing (null).",
        "https://github.com/saltstack/salt/issues/54767",
        target="adminPassword",
        creation_only=True,
    ),
    Restriction(
        "adminPassword",
        in_profile("osProfile.adminPassword"),
        Where(
            "6 to 72 characters on Linux and 8 to 123 on Windows, of three of four classes, none of them a control character",
            _weak_password,
        ),
        "The supplied password must be between {least}-{most} characters long and must satisfy at least 3 of password complexity "
        "requirements from the following:\r\n1) Contains an uppercase character\r\n2) Contains a lowercase character\r\n3) Contains a "
        "numeric digit\r\n4) Contains a special character\r\n5) Control characters are not allowed",
        "https://github.com/Azure/sap-hana/pull/1017",
    ),
    Restriction(
        "adminPassword known",
        in_profile("osProfile.adminPassword"),
        Where("none of Microsoft's list of common passwords", _known_password),
        "The supplied password is not allowed. Choose a password that is not commonly used.",
        "https://github.com/Azure/vm-scale-sets/issues/83",
        target="adminPassword",
        code_assumed=True,
    ),
    Restriction(
        "adminUsername",
        in_profile("osProfile.adminUsername"),
        Where(
            "no reserved name such as admin, root or user; at most 64 characters on Linux and 20 on Windows; no period at the end, none of "
            '\\ / " [ ] : | < > + = ; , ? * @ # ( ) ! & ^ %',
            _bad_user,
        ),
        "The Admin Username specified is not allowed.",
        "https://github.com/Azure/azure-cli/issues/582",
    ),
    *(
        Restriction(
            f"{key} on {system}",
            {kind: f"{PROFILES[kind]}.osProfile.{key}"},
            Where(f"at most {most[windows]} characters, no special characters", _bad_computer(most, windows)),
            f"{system} {'host' if not windows else 'computer'} name{' prefix' if kind == SCALE_SET else ''} cannot "
            + (
                f"be more than {most[windows]} characters long, be entirely numeric, or contain the following characters: {_LISTED}. "
                if windows
                else f"exceed {most[windows]} characters in length or contain the following characters: {_LISTED}. "
            )
            + "The value is '{value}'.",
            source,
            target=key,
        )
        for kind, key, most in ((MACHINE, "computerName", NAME_CHARACTERS), (SCALE_SET, "computerNamePrefix", PREFIX_CHARACTERS))
        for system, windows, source in (
            ("Linux", False, "https://github.com/hashicorp/terraform-provider-azurerm/issues/280"),
            ("Windows", True, "https://github.com/Azure/azure-quickstart-templates/issues/13440"),
        )
    ),
    Restriction(
        "keyData",
        in_profile("osProfile.linuxConfiguration.ssh.publicKeys[].keyData"),
        Where(f"an RSA key of at least {RSA_BITS:,} bits or an ed25519 key", _bad_key),
        "The value of parameter linuxConfiguration.ssh.publicKeys.keyData is invalid.",
        "https://github.com/Azure/azure-cli/issues/22725",
        target="linuxConfiguration.ssh.publicKeys.keyData",
    ),
    Restriction(
        "key path",
        in_profile("osProfile.linuxConfiguration.ssh.publicKeys[].path"),
        Where("/home/<adminUsername>/.ssh/authorized_keys", _path),
        "Destination path for SSH public keys is currently limited to its default value {expected}  due to a known issue in Linux "
        "provisioning agent. The value is '{value}'.",
        "https://github.com/MicrosoftDocs/azure-docs/issues/11471",
        target="linuxConfiguration.ssh.publicKeys.path",
    ),
    Restriction(
        "extensions",
        {SCALE_SET: f"{PROFILES[SCALE_SET]}.extensionProfile.extensions"},
        Where("each name once", _repeated_extensions),
        "The extension name '{value}' is used more than once in the extension profile. Each extension needs a name of its own.",
        "https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/create-or-update#virtualmachinescalesetextension",
        code_assumed=True,
    ),
)
