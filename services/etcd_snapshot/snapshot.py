"""Save this member's etcd cluster to blob storage, list the snapshots, and download one; every snapshot is checked."""

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
"""Age of a file that no run of the program still writes: systemd ends a run after half of that time."""


def log(text: str) -> None:
    print(f"gpufleet-etcd-snapshot: {text}", file=sys.stderr, flush=True)


def run_etcd_program(*command: str) -> str:
    """Return the output of one of etcd's programs; BlobRequestError with its last error."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 a program of the image
    except OSError as error:
        raise BlobRequestError(f"{command[0]} cannot be run: {error.strerror}") from None
    if done.returncode:
        # The reason is in the log line of level error or fatal, or in the last line.
        lines = [line for line in done.stderr.splitlines() if line.strip()] or [f"status {done.returncode}"]
        raise BlobRequestError(f"{Path(command[0]).name} {command[1]} {command[2]}: {lines[-1][:500]}")
    return done.stdout


class EtcdMember:
    """This machine's etcd member, and etcd's programs."""

    def __init__(self, manifest: dict[str, Any]) -> None:
        self.manifest = manifest
        self.programs = manifest.get("programs", "/usr/local/bin")

    def ctl(self, *words: str, seconds: int = 10) -> str:
        """Return the output of etcdctl for this member only, with its own certificate."""
        named = {"endpoints": "endpoint", "cacert": "authority", "cert": "certificate", "key": "key"}
        flags = (f"--{flag}={self.manifest[name]}" for flag, name in named.items())
        return run_etcd_program(f"{self.programs}/etcdctl", *words, *flags, f"--command-timeout={seconds}s")

    def save(self, path: Path) -> dict[str, str]:
        """Write a checked snapshot and return its properties; refuse a member without quorum, because its data may be old."""
        self.ctl("endpoint", "health")
        self.ctl("snapshot", "save", str(path), seconds=1500)
        status = self.check(path)
        # Only this format contains the count.
        fields = self.ctl("get", "", "--prefix", "--count-only", "--write-out=fields", f"--rev={status['revision']}", seconds=60)
        keys = re.findall(r'^"Count" : (\d+)$', fields, re.MULTILINE)
        if not keys:
            raise BlobRequestError("etcdctl returned no number of keys")
        version = json.loads(self.ctl("endpoint", "status", "--write-out=json"))[0]["Status"]["version"]
        return {**status, "keys": keys[0], "etcd_version": version}

    def check(self, path: Path) -> dict[str, str]:
        """Return revision, hash and SHA-256 of a snapshot file; BlobRequestError where it is incomplete."""
        size, digest = path.stat().st_size, hashlib.sha256()
        if size % SECTOR_BYTES != TRAILER_BYTES:
            raise BlobRequestError(
                f"{path.name} has {size} bytes, so it is no snapshot with its checksum: it is incomplete, or a copy from a data directory"
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
    """Save, check and upload a snapshot, unless one younger than a number of minutes exists; return the newest."""
    now = datetime.datetime.now(datetime.UTC)
    prefix = f"{manifest['ring']}/"
    if unless_newer:
        for newest in container.blobs(prefix)[-1:]:
            if age_minutes(newest["name"], now) < unless_newer:
                log(f"{newest['name']} is recent enough")
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
        # The deadline of the upload starts now, however long etcd took.
        container.deadline = time.monotonic() + DEADLINE_SECONDS
        upload(container, name, path, metadata)
    finally:
        for left in (path, path.with_name(f"{path.name}.part")):
            left.unlink(missing_ok=True)
    log(f"{name}: revision {known['revision']}, {known['keys']} keys, {known['bytes']} bytes")
    return {"name": name, "made": "yes", **metadata}


def age_minutes(name: str, now: datetime.datetime) -> float:
    """Return the minutes since a snapshot began, from its name; infinite for another form of name."""
    found = re.search(r"/(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ)-", name)
    if not found:
        return float("inf")
    begun = datetime.datetime.strptime(found[1], "%Y-%m-%dT%H-%M-%SZ").replace(tzinfo=datetime.UTC)
    return (now - begun).total_seconds() / 60


def fetch(manifest: dict[str, Any], container: Container, name: str, target: Path) -> Any:
    """Download a snapshot, the newest complete one by default, to a file; return its metadata, which is checked against the file."""
    known = container.blobs(f"{manifest['ring']}/")
    chosen = [blob for blob in known if blob["name"] == name] if name else list(reversed(known))
    if not chosen:
        newest = ", ".join(blob["name"] for blob in known[-3:]) or "none"
        raise BlobRequestError(f"no snapshot {name or 'of this etcd cluster'} in {container.url}; the newest are: {newest}")
    faults = []
    for blob in chosen:
        try:
            if target.exists() and EtcdMember(manifest).check(target)["sha256"] == blob.get("sha256"):
                return blob
        except BlobRequestError:
            log(f"{target} is incomplete; it is downloaded again")
        try:
            download(container, blob, target)
            found = EtcdMember(manifest).check(target)
            wrong = [key for key, value in found.items() if blob.get(key) != value]
            if wrong:
                raise BlobRequestError(f"its {wrong[0]} is {found[wrong[0]]}, but {blob.get(wrong[0])} was saved")
            return blob
        except BlobRequestError as error:
            target.unlink(missing_ok=True)
            faults.append(f"{blob['name']}: {error}")
            log(faults[-1])
    raise BlobRequestError("; ".join(faults))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpufleet-etcd-snapshot", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    saving = verbs.add_parser("save", help="save this member's etcd cluster now")
    saving.add_argument("--unless-newer-than-minutes", type=float, default=0.0)
    verbs.add_parser("list", help="list the snapshots, oldest first")
    fetching = verbs.add_parser("fetch", help="download a snapshot to a file and check it")
    fetching.add_argument("--name", default="", help="name of the snapshot; default: the newest complete one")
    fetching.add_argument("target", type=Path)
    return parser.parse_args()


def main() -> int:
    """Run the command line and return the exit status: 1 without a snapshot, with the reason on standard error."""
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
            result: object = save(manifest, container, options.unless_newer_than_minutes)
        elif options.verb == "list":
            result = container.blobs(f"{manifest['ring']}/")
        else:
            result = fetch(manifest, container, options.name, options.target)
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
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
