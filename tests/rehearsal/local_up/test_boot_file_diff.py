"""Changed custom data reads as its changed files, each distinct change once, and never as a secret."""

from __future__ import annotations

import base64
import gzip
import io
import tarfile
import zipfile
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rehearsal.local_up.boot_file_diff import CustomDataChange, boot_file_lines
from rehearsal.local_up.value_text import shorten_pair, value_lines

FLEET = "VirtualMachineScaleSet"


def coded(document: str | bytes) -> str:
    return base64.b64encode(document if isinstance(document, bytes) else document.encode()).decode()


def config(**files: str | bytes | dict[str, object]) -> str:
    """A cloud-init document with one file per name in /etc, of a text, of bytes or of an entry."""
    entries = []
    for name, content in files.items():
        entry = content if isinstance(content, dict) else {"content": content}
        entries.append({"path": f"/etc/{name}", **entry})
    return f"#cloud-config\n{yaml.safe_dump({'write_files': entries, 'runcmd': [['systemctl', 'daemon-reload']]})}"


def lines(old: str | bytes, new: str | bytes, *, room: int = 30, everything: bool = True) -> list[str]:
    return boot_file_lines([CustomDataChange(FLEET, "a-000", coded(old), coded(new))], room, everything=everything)


OLD, NEW = config(app="level: 1\nport: 80\n", same="x\n"), config(app="level: 2\nport: 80\n", same="x\n")
CHANGED = ["    @@ line 1", "    - level: 1", "    + level: 2", "      port: 80"]


def mime(document: str) -> bytes:
    """A MIME archive with a document, a script and a compressed document."""
    message = MIMEMultipart(boundary="one")
    message.attach(MIMEText(document, "cloud-config"))
    script = MIMEText("#!/bin/sh\n", "x-shellscript")
    script.add_header("Content-Disposition", "attachment", filename="begin.sh")
    message.attach(script)
    message.attach(MIMEApplication(gzip.compress(document.replace("/etc", "/opt").encode())))
    return message.as_bytes()


@pytest.mark.parametrize("form", [str, lambda document: gzip.compress(document.encode())])
def test_a_document_is_read_plain_and_compressed(form: type[str]) -> None:
    assert lines(form(OLD), form(NEW)) == [
        "files in customData that change:",
        f"  /etc/app (+1 -1) in {FLEET} a-000",
        *CHANGED,
    ]


def test_a_mime_archive_is_read_with_its_compressed_parts() -> None:
    found = lines(mime(OLD), mime(NEW))
    assert [line for line in found if line.startswith("  /")] == [f"  /{one}/app (+1 -1) in {FLEET} a-000" for one in ("etc", "opt")]


@pytest.mark.parametrize("encoding", ["b64", "gz+base64", "gzip"])
def test_the_content_of_a_file_is_decoded(encoding: str) -> None:
    def entry(text: str) -> str:
        content = gzip.compress(text.encode()) if "gz" in encoding else text.encode()
        return config(app={"encoding": encoding, "content": base64.b64encode(content).decode() if "64" in encoding else content})

    assert lines(entry("level: 1\nport: 80\n"), entry("level: 2\nport: 80\n"))[2:] == CHANGED


def test_an_archive_shows_its_size_and_the_members_that_differ() -> None:
    def tar(**members: bytes) -> bytes:
        with tarfile.open(fileobj=(packed := io.BytesIO()), mode="w:gz") as archive:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        return packed.getvalue()

    def zipped(content: bytes) -> bytes:
        with zipfile.ZipFile(packed := io.BytesIO(), "w") as archive:
            archive.writestr("m.py", content)
        return packed.getvalue()

    old, new = tar(a=b"1", b=b"2", same=b"3"), tar(b=b"22", c=b"4", same=b"3")
    assert lines(config(pack=old), config(pack=new)) == [
        "files in customData that change:",
        f"  /etc/pack (archive, {len(old)} -> {len(new)} bytes; +1 -1 ~1) in {FLEET} a-000",
        "    - a (1 -> 0 bytes)",
        "    ~ b (1 -> 2 bytes)",
        "    + c (0 -> 1 bytes)",
    ]
    assert lines(config(pack=zipped(b"1")), config(pack=zipped(b"22")))[2] == "    ~ m.py (1 -> 2 bytes)"
    assert lines(config(pack=b"\xff\x00"), config(pack=b"\xff\x00\x01"))[1] == f"  /etc/pack (binary, 2 -> 3 bytes) in {FLEET} a-000"


def test_new_and_removed_files_modes_and_commands_are_changes() -> None:
    old = config(gone="x\n", mode={"content": "x\n", "permissions": "0644"})
    new = config(new="y\n", mode={"content": "x\n", "permissions": "0600"}).replace("daemon-reload", "daemon-reexec")
    assert [line for line in lines(old, new) if line.startswith("  ") and line[2] != " "] == [
        f"  /etc/gone (removed; -1) in {FLEET} a-000",
        f"  /etc/mode (mode 0644 -> 0600) in {FLEET} a-000",
        f"  /etc/new (new; +1) in {FLEET} a-000",
        f"  cloud-init runcmd (+1 -1) in {FLEET} a-000",
    ]


def test_a_document_without_a_changed_file_and_an_unreadable_one_say_so() -> None:
    assert lines(config(a="1\n", b="2\n"), config(b="2\n", a="1\n"))[1].startswith("  (document) (no file differs: only the order")
    assert lines("", OLD)[1:2] == [f"  /etc/app (new; +2) in {FLEET} a-000"]
    assert "    + a\\x1b[31mb" in lines(config(app="x\n"), config(app="a\x1b[31mb\n"))
    found = boot_file_lines([CustomDataChange(FLEET, "a", "…", "secret…")], 30, everything=True)
    assert found[1] == f"  (unreadable) (not base64; 1 -> 7 characters) in {FLEET} a"


@pytest.mark.parametrize("text", ["write_files: {}\n", "- {}\n", "day: 2026-02-3{}\n", "hostname: {}\n"])
def test_a_document_of_an_unusual_shape_shows_its_changed_line(text: str) -> None:
    old, new = (f"#cloud-config\n{text.format(digit)}" for digit in "01")
    found = lines(old, new)
    assert found[1].endswith(f" (+1 -1) in {FLEET} a-000")
    assert sum(line.startswith(("    + ", "    - ")) for line in found) == 2


def test_a_value_is_printed_without_control_characters() -> None:
    shown = [value_lines("tag", "x", "a\x1b[31mb"), value_lines("tag", None, "a\x1b[31mb"), value_lines("tag", "x" * 70, "x" * 70 + "\x1b")]
    assert shown[:2] == [["tag: x => a\\x1b[31mb"], ["tag: (absent) => a\\x1b[31mb"]]
    assert "\x1b" not in "".join(shown[2])


def test_equal_changes_are_shown_once_with_their_resources_and_bounded_without_diff() -> None:
    def documents(name: str, text: str) -> tuple[str, str]:
        return coded(config(app=f"# of {name}\n{text}1\n", long="x\n")), coded(config(app=f"# of {name}\n{text}2\n", long="y\n" * 50))

    changes = [CustomDataChange(FLEET, f"a-{number:03}", *documents(f"a-{number:03}", "level: ")) for number in range(200)]
    changes.append(CustomDataChange("VirtualMachine", "etcd", *documents("etcd", "other: ")))
    short, whole = (boot_file_lines(changes, 20, everything=everything) for everything in (False, True))
    assert short == [
        "files in customData that change:",
        f"  /etc/app (+1 -1) in 200 {FLEET} (a-000 … a-199)",
        "    @@ line 1",
        "      # of a-000",
        "    - level: 1",
        "    + level: 2",
        "  /etc/app (+1 -1) in VirtualMachine etcd",
        "    @@ line 1",
        "      # of etcd",
        "    - other: 1",
        "    + other: 2",
        f"  /etc/long (+50 -1) in 200 {FLEET} (a-000 … a-199), VirtualMachine etcd",
        "    @@ line 1",
        "    - x",
        "    + y",
        "    + y",
        "    + y",
        "    + y",
        "    + y",
        "    45 more lines; --diff prints them",
    ]
    assert sum(line == "    + y" for line in whole) == 50
    assert "a-117" in whole[1]
    assert boot_file_lines(changes, 3, everything=False)[1:] == [short[1], "  2 more files; --diff prints them"]
    assert boot_file_lines(changes, 4, everything=False)[-1] == "  1 more file; --diff prints them"


KEY = "-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----\n"
JWT = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJub2RlIn0.{}"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.txt", KEY),
        ("a.key", "{}\n"),
        ("a.json", '{{"private": "' + KEY.replace("\n", "\\n") + '"}}\n'),
        ("a.yaml", "client-key-data: {}\n"),
        ("a.yaml", "auth:\n  password: |\n    {}\n  next: 1\n"),
        ("a.yaml", "adminPassword: '{}'\nnext: 1\n"),
        ("a.yaml", "kind: Secret\ndata:\n  anything: {}\n"),
        ("a.yaml", "encryption-key: Q0hBUkFDVEVSUzEyMzQ1Ng{}==\n"),
        ("a.sh", "run --token {} --verbose\n"),
        ("a.sh", 'run --token="{}" --verbose\n'),
        ("a.json", '["run", "--token", "{}"]\n'),
        ("a.yaml", "- run\n- --api-token\n- {}\n- next\n"),
        ("a.sh", "curl -H 'Authorization: Bearer {}'\n"),
        ("a.sh", "curl https://user:{}@host/\n"),
        ("a.sh", "curl https://a.blob/c?sv=1&sig={}\n"),
        ("a.sh", f"send {JWT}\n"),
        ("a.ini", "AccountKey={};EndpointSuffix=x\n"),
        ("a.yaml", 'db_password: "1\\"{}"\n'),
        ("a.yaml", "db_password: 1,{} 2\n"),
        ("a.sh", "export DB_PASSWORD=1,{}\n"),
        ("a.yaml", "secret: /{}=\n"),
        ("a.txt", "user_password: $6${}\n"),
    ],
)
def test_no_secret_is_printed(file: str, text: str) -> None:
    old, new = "abcdefGH1234hijklmno", "zyxwvuTS9876rqponmlk"
    found = "\n".join(lines(config(**{file: text.format(old)}), config(**{file: text.format(new)})))
    assert "[secret]" in found
    assert not {old, new} & {found[place : place + len(old)] for place in range(len(found))}
    inline = "\n".join(value_lines("data.setting", text.format(old), text.format(new)))
    # A file's name is no part of a setting: only a secret with a form or a name of its own is one there.
    assert file == "a.key" or not {old, new} & {inline[place : place + len(old)] for place in range(len(inline))}
    added = "\n".join(value_lines("data.setting", None, text.format(new)))
    assert file == "a.key" or not any(new[: len(new) // 2] in one or new[len(new) // 2 :] in one for one in added.splitlines())


def test_a_value_with_a_secret_name_is_masked_and_settings_that_only_sound_secret_are_shown() -> None:
    assert value_lines("osProfile.adminPassword", "a", "b") == ["osProfile.adminPassword: [secret]"]
    texts = (
        "tls-private-key-file=/etc/a.pem",
        "key: nvidia-com/gpu-a100-80gb",
        "authenticationTokenWebhook: true",
        "tokenTTL: 24h",
        "secret: {{bootstrap-token}}",
    )
    for text in texts:
        assert f"    + {text}" in lines(config(app="x\n"), config(app=f"{text}\n"))


def test_the_differing_part_of_long_values_is_shown_on_both_sides() -> None:
    base = "/subscriptions/e5f7/resourceGroups/gf-dev/providers/Microsoft.Compute/galleries/fleet/images/{}/versions/{}"
    pairs = [
        (base.format("cpu", "1"), base.format("cpu", "2"), "…/1 => …/2"),
        (base.format("cpu", "2026.11.0"), base.format("gpu-large", "2026.11.0"), "…/cpu… => …/gpu-large…"),
        (f"ssh-ed25519 {'A' * 60}cVtN fleet", f"ssh-ed25519 {'A' * 60}cVtQ fleet", None),
    ]
    for old, new, expected in pairs:
        found = value_lines("path", old, new)
        assert expected is None or found == [f"path: {expected}"]
        assert "…" in found[0]
    assert value_lines("path", "x" * 70, "y" * 70) == ["path:", f"  - {'x' * 70}", f"  + {'y' * 70}"]


@given(st.text("ab/ ", max_size=90), st.text("abc", max_size=30), st.text("abc", max_size=30), st.text("ab/ ", max_size=90))
def test_two_different_texts_stay_different_when_shortened(start: str, one: str, other: str, end: str) -> None:
    old, new = f"{start}{one}{end}", f"{start}{other}{end}"
    first, second = shorten_pair(old, new)
    assert (first == second) == (old == new)
    assert max(len(first), len(second)) <= 190
