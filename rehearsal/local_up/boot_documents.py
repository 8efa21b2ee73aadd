"""Files in custom data, for a diff: cloud-init documents, MIME archives and scripts, in base64 and possibly compressed."""

from __future__ import annotations

import base64
import binascii
import io
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from typing import Any

import yaml

HEADER = "#cloud-config"
GZIP = b"\x1f\x8b"
MOST_BYTES = 16 << 20
"""Bytes of one file that are decompressed at most, far above what custom data of a machine contains."""
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
ENCODED = re.compile(r"(gz|gzip)|(?:(gz|gzip)\+)?(b64|base64)")
"""Encodings of a file's content: https://docs.cloud-init.io/en/latest/reference/modules.html#write-files"""
RENDERED = f"{HEADER}\nwrite_files:\n"
"""Begin of a document as components/boot/machine.py writes it: a file is an entry that begins in the first column."""
ENTRY = re.compile(r"^(?=- path: |[a-z_]+:)", re.MULTILINE)


class UnreadableDocumentError(ValueError):
    """Custom data that cannot be decoded; the message is the reason."""


@dataclass(frozen=True)
class DocumentFile:
    """One file: content, and mode and owner as cloud-init writes them. Commands become a file `cloud-init KEY`, without mode and owner."""

    content: bytes
    mode: str = ""
    owner: str = ""


def changed_files(old: str, new: str) -> dict[str, tuple[DocumentFile | None, DocumentFile | None]]:
    """Return the files that differ between two custom data, by path; None for a missing file. Raise UnreadableDocumentError."""
    before, after = _decoded(old), _decoded(new)
    if before.startswith(RENDERED.encode()) and after.startswith(RENDERED.encode()):
        before, after = _without_common_entries(before, after)
    files, other = _files(before), _files(after)
    return {path: (files.get(path), other.get(path)) for path in sorted({*files, *other}) if files.get(path) != other.get(path)}


def archive_members(content: bytes) -> dict[str, bytes] | None:
    """Return the files in a zip or tar archive by name; None for other content."""
    try:
        if zipfile.is_zipfile(io.BytesIO(content)):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                small = (one for one in archive.infolist() if not one.is_dir() and one.file_size <= MOST_BYTES)
                return {one.filename: archive.read(one) for one in small}
        with tarfile.open(fileobj=io.BytesIO(content)) as packed:
            return {one.name: found.read(MOST_BYTES) for one in packed if (found := packed.extractfile(one)) is not None}
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError):
        # The last ones are damaged, encrypted and unusual archives, whose bytes are compared instead.
        return None


def _decoded(custom_data: str) -> bytes:
    try:
        content = base64.b64decode(custom_data, validate=True)
    except (binascii.Error, ValueError):
        raise UnreadableDocumentError("not base64") from None
    return _unpacked(content)


def _unpacked(content: bytes) -> bytes:
    """Return the content decompressed, if it is gzip."""
    if not content.startswith(GZIP):
        return content
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(content, MOST_BYTES)
    except zlib.error:
        raise UnreadableDocumentError("damaged gzip") from None


def _without_common_entries(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Return two rendered documents without the files that both have: parsing YAML takes most of the time of a diff."""
    entries, other = ENTRY.split(old.decode(errors="replace")), ENTRY.split(new.decode(errors="replace"))
    same = {entry for entry in {*entries} & {*other} if entry.startswith("- path: ")}
    before, after = ("".join(entry for entry in found if entry not in same) for found in (entries, other))
    return before.encode(), after.encode()


def _files(document: bytes) -> dict[str, DocumentFile]:
    """Return the files of a decoded document; none for an empty one."""
    if not document:
        return {}
    mime = document.lower().startswith((b"content-type:", b"mime-version:"))
    files: dict[str, DocumentFile] = {}
    for path, file in _parts(message_from_bytes(document)) if mime else _part(document, "user data"):
        number = 1 + sum(one == path or one.startswith(f"{path} (") for one in files)
        files[path if number == 1 else f"{path} ({number})"] = file
    return files


def _parts(message: Message) -> Iterator[tuple[str, DocumentFile]]:
    """Yield the files of a MIME archive."""
    for number, part in enumerate(one for one in message.walk() if not one.is_multipart()):
        content = part.get_payload(decode=True)
        name = part.get_filename() or f"part {number} ({part.get_content_type()})"
        yield from _part(_unpacked(content) if isinstance(content, bytes) else b"", name)


def _part(content: bytes, name: str) -> Iterator[tuple[str, DocumentFile]]:
    """Yield the files of one document: those of write_files and one per other key for cloud-init, else the document itself."""
    if not content.startswith(HEADER.encode()):
        yield name, DocumentFile(content)
        return
    try:
        document = yaml.load(content, LOADER)  # noqa: S506 (a safe loader, the faster one if libyaml is installed)
    except (yaml.YAMLError, ValueError):
        # ValueError: bytes that are not UTF-8, or a date such as 2026-02-30.
        document = None
    if not isinstance(document, Mapping):
        yield name, DocumentFile(content)
        return
    for key, value in document.items():
        if key == "write_files" and isinstance(value, list | None):
            yield from (_written(number, entry) for number, entry in enumerate(value or ()))
        else:
            # The end mark that YAML writes after a lone scalar would be a changed line.
            text = yaml.safe_dump(value, default_flow_style=False, sort_keys=True, width=10_000).removesuffix("...\n")
            yield f"cloud-init {key}", DocumentFile(text.encode())


def _written(number: int, entry: Any) -> tuple[str, DocumentFile]:
    """Return the path and the file of an entry of write_files."""
    if not isinstance(entry, Mapping):
        return f"write_files[{number}]", DocumentFile(str(entry).encode())
    content = entry.get("content") or ""
    given = content if isinstance(content, bytes) else str(content).encode()
    path = str(entry.get("path") or f"write_files[{number}]")
    return path, DocumentFile(
        _content(given, str(entry.get("encoding") or "")), str(entry.get("permissions") or ""), str(entry.get("owner") or "")
    )


def _content(content: bytes, encoding: str) -> bytes:
    """Return a file's content without its encoding; content that does not have this encoding stays as it is."""
    found = ENCODED.fullmatch(encoding.lower())
    if found is None:
        return content
    try:
        plain = base64.b64decode(content) if found[3] else content
        return _unpacked(plain) if found[1] or found[2] else plain
    except (binascii.Error, UnreadableDocumentError):
        return content
