"""Masks of secrets in text that is printed: private keys, tokens, passwords, and values of settings with such names."""

from __future__ import annotations

import base64
import re
from functools import lru_cache

from rehearsal.program.graph import MASK

NAME = (
    r"(?:password|passwd|passphrase|secret|token|credentials?|private[-_ ]?key|client[-_]?key[-_]?data|connection[-_]?string"
    r"|(?:account|access|api|shared|storage|primary|secondary)[-_]?key)"
)
"""End of the name of a setting whose value is secret."""
WORD = r"(?<![\w.-])[\w.-]*"
"""Begin of a name; a search from every character of a long word would take quadratic time."""
SECRET_NAME = re.compile(rf"{NAME}$", re.IGNORECASE)
QUOTED = r"""(?:"(?:[^"\\]|\\.)*"?|'(?:[^']|'')*'?)"""
SETTING = re.compile(
    rf"""(?P<name>{WORD}{NAME}["']?\s*:\s+)(?P<value>{QUOTED}|\S.*)"""
    rf"""|(?P<name_before_equals>{WORD}{NAME}["']?\s*[:=]\s*|(?<![\w.-])--[\w.-]*{NAME}["']?,?\s+)(?P<value_after_equals>{QUOTED}|\S+)""",
    re.IGNORECASE,
)
"""A setting with a secret name, as YAML and JSON write it, or as an INI file, a shell or a flag does."""
OPEN = re.compile(rf"""(?:- +)*["']?[\w.-]*{NAME}["']?\s*:\s*(?:[|>][-+0-9]*)?""", re.IGNORECASE)
"""A setting with a secret name whose value is in the lines below."""
FLAG = re.compile(rf"""(?:- +)*["']?-[\w.-]*{NAME}["']?,?""", re.IGNORECASE)
"""A flag with a secret name whose value is the next item of a list."""
PLAIN = re.compile(
    r"""["']?(?:/(?:etc|var|run|usr|opt|home|root|tmp|dev|proc|sys|srv|mnt)/[^\s"']*|\$\{[^}]*\}|(?-i:\$[A-Z_]+)|\{\{[^}]*\}\}|[{\[]"""
    r"""|true|false|null|none|[|>][-+0-9]*|)["']?,?""",
    re.IGNORECASE,
)
"""Values that are no secret: a path, a reference, an opened collection or a switch."""
KEY_VALUE = re.compile(rf"""(?P<name>{WORD}key["']?\s*[:=]\s*["']?)(?P<value>[A-Za-z0-9+/_-]{{16,}}={{0,2}})(?![\w.])""", re.IGNORECASE)
TOKENS = (
    re.compile(r"eyJ[\w-]{8,}\.[\w-]+\.?[\w-]*"),
    re.compile(r"(?<![\w.])[a-z0-9]{6}\.[a-z0-9]{16}(?![\w.])"),
    re.compile(r"(?<=sig=)[^&\s\"']+"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
    re.compile(r"(?<=Bearer )\S{8,}|(?<=Basic )[A-Za-z0-9+/]{8,}={0,2}"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"),
)
"""Secrets with a form of their own: JWTs, bootstrap tokens, signatures of SAS URLs, credentials in URLs and headers, private keys."""
PEM_BEGIN, PEM_END = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"), re.compile(r"-----END [A-Z ]*PRIVATE KEY-----")
PEM_IN_BASE64 = re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/]+={0,2}")
SECRET_FILE = re.compile(r"(?:\.key|\.p12|\.pfx|key\.pem|/id_[a-z0-9]+|token|password|passwd|shadow|credentials)$", re.IGNORECASE)
SECRET_OBJECT = re.compile(r"""^\s*["']?kind["']?:\s*["']?Secret["']?,?\s*$""", re.MULTILINE)


def is_secret_value(path: str, value: object) -> bool:
    """Return whether the value at a path of a resource is secret by its name, such as osProfile.adminPassword."""
    named = SECRET_NAME.search(path.partition(" (")[0].rstrip("]\"'")) is not None
    return value == MASK or (named and isinstance(value, str) and not PLAIN.fullmatch(value))


@lru_cache(maxsize=4096)
def mask_line(line: str) -> str:
    """Return a line with every secret in it as [secret]; cached, because the machines of a fleet share most lines."""
    line = PEM_IN_BASE64.sub(_masked_pem, line)
    for token in TOKENS:
        line = token.sub(MASK, line)
    return KEY_VALUE.sub(_masked_key, SETTING.sub(_masked_setting, line))


def mask_lines(path: str, lines: list[str]) -> list[str]:
    """Return the lines of a file, as many as before, with every secret as [secret]; the whole content where the file itself is secret."""
    if SECRET_FILE.search(path) or SECRET_OBJECT.search("\n".join(lines)):
        return [MASK] * len(lines)
    found, in_key, below, flag = [], False, -1, False
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if below >= 0 and line.strip() and indent <= below:
            below = -1
        in_key = in_key or PEM_BEGIN.search(line) is not None
        found.append(MASK if (in_key or flag or below >= 0) and line.strip() else mask_line(line))
        flag = FLAG.fullmatch(line.strip()) is not None
        in_key = in_key and not PEM_END.search(line)
        if below < 0 and OPEN.fullmatch(line.strip()):
            below = indent
    return found


def _masked_setting(found: re.Match[str]) -> str:
    value = found["value"] or found["value_after_equals"]
    return found[0] if PLAIN.fullmatch(value) else f"{found['name'] or found['name_before_equals']}{MASK}"


def _masked_key(found: re.Match[str]) -> str:
    """Mask the value of a key that reads as random: hexadecimal, base64 with padding, or letters of both cases with digits."""
    value = found["value"]
    random = (
        re.fullmatch(r"[0-9a-f]{32,}", value) or value.endswith("=") or all(re.search(kind, value) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
    )
    return f"{found['name']}{MASK}" if random and not PLAIN.fullmatch(value) else found[0]


def _masked_pem(found: re.Match[str]) -> str:
    text = found[0].rstrip("=")
    text = text[: len(text) // 4 * 4]
    return MASK if b"PRIVATE KEY" in base64.b64decode(text) else found[0]
