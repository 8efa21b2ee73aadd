"""Save this member's etcd ring to blob storage, list what is there, and bring a snapshot back; a snapshot that was not checked is none."""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from services.etcd_snapshot.blobs import (
    DEADLINE_SECONDS,
    BlobRequestError,
    BlobResponseError,
    BlobServiceUnreachableError,
    Container,
    download,
    upload,
)

MANIFEST = os.environ.get("GPUFLEET_SNAPSHOT_MANIFEST", "/etc/gpufleet/etcd-snapshot.json")
TRAILER_BYTES = 32
SECTOR_BYTES = 512
STALE_FILE_SECONDS = 3600
"""Age of a file that no run of the program is still writing: systemd ends one after half as long."""


def log(text: str) -> None:
    print(f"gpufleet-etcd-snapshot: {text}", file=sys.stderr, flush=True)


def run_etcd_program(*command: str) -> str:
    """Output of etcd's own programs; Refused with their last words."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 a program of the image
    except OSError as error:
        raise BlobRequestError(f"{command[0]} cannot be run: {error.strerror}") from None
    if done.returncode:
        # What names the fault is the log line at error or fatal level, or the last line.
        lines = [line for line in done.stderr.splitlines() if line.strip()] or [f"status {done.returncode}"]
        raise BlobRequestError(f"{Path(command[0]).name} {command[1]} {command[2]}: {lines[-1][:500]}")
    return done.stdout


class EtcdMember:
    """This machine's etcd member, and the programs that ask it."""

    def __init__(self, manifest: dict[str, Any]) -> None:
        self.manifest = manifest
        self.programs = manifest.get("programs", "/usr/local/bin")

    def ctl(self, *words: str, seconds: int = 10) -> str:
        """Output of etcdctl, asked of this member alone, with its own certificate."""
        named = {"endpoints": "endpoint", "cacert": "authority", "cert": "certificate", "key": "key"}
        flags = (f"--{flag}={self.manifest[name]}" for flag, name in named.items())
        return run_etcd_program(f"{self.programs}/etcdctl", *words, *flags, f"--command-timeout={seconds}s")

    def save(self, path: Path) -> dict[str, str]:
        """A checked snapshot at path, and what is known of it; a member without its quorum, whose data may be old, is refused."""
        self.ctl("endpoint", "health")
        self.ctl("snapshot", "save", str(path), seconds=1500)
        status = self.check(path)
        # The count is given in this form alone.
        fields = self.ctl("get", "", "--prefix", "--count-only", "--write-out=fields", f"--rev={status['revision']}", seconds=60)
        keys = re.findall(r'^"Count" : (\d+)$', fields, re.MULTILINE)
        if not keys:
            raise BlobRequestError("etcdctl gave no number of keys")
        version = json.loads(self.ctl("endpoint", "status", "--write-out=json"))[0]["Status"]["version"]
        return {**status, "keys": keys[0], "etcd_version": version}

    def check(self, path: Path) -> dict[str, str]:
        """Revision, hash and SHA-256 of a snapshot's file; Refused where it is not whole."""
        size, digest = path.stat().st_size, hashlib.sha256()
        if size % SECTOR_BYTES != TRAILER_BYTES:
            raise BlobRequestError(
                f"{path.name} has {size} bytes, which is no snapshot with its checksum: it was cut, or copied from a data directory"
            )
        with path.open("rb") as file:
            left = size - TRAILER_BYTES
            while left:
                part = file.read(min(left, 1024 * 1024))
                digest.update(part)
                left -= len(part)
            if file.read() != digest.digest():
                raise BlobRequestError(f"{path.name} is not what etcd wrote: its checksum differs")
        status = json.loads(run_etcd_program(f"{self.programs}/etcdutl", "snapshot", "status", str(path), "--write-out=json"))
        return {"revision": str(status["revision"]), "hash": f"{status['hash']:08x}", "sha256": digest.hexdigest(), "bytes": str(size)}


def save(manifest: dict[str, Any], container: Container, unless_newer: float) -> dict[str, str]:
    """Save, check and upload, unless a snapshot younger than a number of minutes is there; gives the newest."""
    now = datetime.datetime.now(datetime.UTC)
    prefix = f"{manifest['ring']}/"
    if unless_newer:
        for newest in container.blobs(prefix)[-1:]:
            if age_minutes(newest["name"], now) < unless_newer:
                log(f"{newest['name']} is young enough")
                return {**newest, "made": ""}
    directory = Path(manifest["directory"])
    directory.mkdir(mode=0o700, exist_ok=True)
    for left in directory.iterdir():
        if left.stat().st_mtime < now.timestamp() - STALE_FILE_SECONDS:
            left.unlink()
    path = directory / f"{now:%Y%m%dT%H%M%SZ}.db"
    try:
        known = EtcdMember(manifest).save(path)
        metadata = {**{key: str(manifest[key]) for key in ("cluster", "ring", "member")}, **known}
        name = f"{prefix}{now:%Y-%m-%dT%H-%M-%SZ}-revision-{known['revision']}.db"
        # Storage has its whole patience from here on, however long etcd took.
        container.deadline = time.monotonic() + DEADLINE_SECONDS
        upload(container, name, path, metadata)
    finally:
        for left in (path, path.with_name(f"{path.name}.part")):
            left.unlink(missing_ok=True)
    log(f"{name}: revision {known['revision']}, {known['keys']} keys, {known['bytes']} bytes")
    return {"name": name, "made": "yes", **metadata}


def age_minutes(name: str, now: datetime.datetime) -> float:
    """Minutes since a snapshot was begun, by its name; infinite for a name of another form."""
    found = re.search(r"/(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ)-", name)
    if not found:
        return float("inf")
    begun = datetime.datetime.strptime(found[1], "%Y-%m-%dT%H-%M-%SZ").replace(tzinfo=datetime.UTC)
    return (now - begun).total_seconds() / 60


def fetch(manifest: dict[str, Any], container: Container, wanted: str, target: Path) -> Any:
    """Bring a snapshot, the newest that is whole where none is named, to a file; gives what its metadata says, checked against the file."""
    known = container.blobs(f"{manifest['ring']}/")
    chosen = [blob for blob in known if blob["name"] == wanted] if wanted else list(reversed(known))
    if not chosen:
        newest = ", ".join(blob["name"] for blob in known[-3:]) or "none"
        raise BlobRequestError(f"no snapshot {wanted or 'of this ring'} in {container.url}; the newest are: {newest}")
    faults = []
    for blob in chosen:
        try:
            if target.exists() and EtcdMember(manifest).check(target)["sha256"] == blob.get("sha256"):
                return blob
        except BlobRequestError:
            log(f"{target} is not whole; it is fetched again")
        try:
            download(container, blob, target)
            found = EtcdMember(manifest).check(target)
            wrong = [key for key, value in found.items() if blob.get(key) != value]
            if wrong:
                raise BlobRequestError(f"its {wrong[0]} is {found[wrong[0]]}, where {blob.get(wrong[0])} was saved")
            return blob
        except BlobRequestError as error:
            target.unlink(missing_ok=True)
            faults.append(f"{blob['name']}: {error}")
            log(faults[-1])
    raise BlobRequestError("; ".join(faults))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpufleet-etcd-snapshot", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    saving = verbs.add_parser("save", help="save this member's ring now")
    saving.add_argument("--unless-newer-than-minutes", type=float, default=0.0)
    verbs.add_parser("list", help="say what is there, oldest first")
    fetching = verbs.add_parser("fetch", help="bring a snapshot to a file, checked")
    fetching.add_argument("--name", default="", help="the newest that is whole where none is named")
    fetching.add_argument("target", type=Path)
    return parser.parse_args()


def main() -> int:
    """Do what the command line asks, and give the exit status: 1 where there is no snapshot, with the reason on standard error."""
    os.umask(0o077)
    options = parse_arguments()
    try:
        manifest = json.loads(Path(MANIFEST).read_text())
    except (OSError, ValueError) as error:
        log(f"{MANIFEST} cannot be read: {error}")
        return 1
    try:
        container = Container(manifest["container"], manifest["identity"])
        if options.verb == "save":
            answer: object = save(manifest, container, options.unless_newer_than_minutes)
        elif options.verb == "list":
            answer = container.blobs(f"{manifest['ring']}/")
        else:
            answer = fetch(manifest, container, options.name, options.target)
    except BlobResponseError as error:
        remedy = (
            "the machine's identity needs Storage Blob Data Contributor on the container"
            if error.status == 403
            else "see the storage account"
        )
        log(f"{manifest['container']}: {error}: {remedy}")
        return 1
    except (BlobRequestError, BlobServiceUnreachableError, ElementTree.ParseError) as error:
        log(str(error))
        return 1
    except OSError as error:
        log(f"{error.filename}: {error.strerror}")
        return 1
    print(json.dumps(answer, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
