#!/usr/bin/env python3
"""Make one filesystem of the machine's local NVMe devices and mount it: RAID0 over several, plain on one; touch nothing unknown."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODEL = "microsoft nvme direct disk"
LABEL = "gpufleet"
ARRAY = "/dev/md/gpufleet"
COLUMNS = "PATH,TYPE,MODEL,FSTYPE,LABEL,MOUNTPOINT"
# Devices appear one by one; a missing one after this time is a broken one.
WAIT_SECONDS = float(os.environ.get("GPUFLEET_NVME_WAIT_SECONDS", "120"))

Device = dict[str, Any]


class Refused(Exception):
    """Why the devices stay as they are, and what a person should do."""


def say(text: str) -> None:
    print(f"gpufleet-nvme: {text}", file=sys.stderr, flush=True)


def run(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except subprocess.CalledProcessError as error:
        raise Refused(f"{' '.join(command)} failed with {error.returncode}: {error.stderr.strip()}") from None
    except FileNotFoundError:
        raise Refused(f"{command[0]} is not installed; the machine's image must carry it") from None


def local_devices() -> list[Device]:
    """Local NVMe disks; remote disks name another model, and the disk that holds the system has partitions in use."""
    disks = [disk for disk in json.loads(run("lsblk", "--json", "--output", COLUMNS))["blockdevices"] if disk["type"] == "disk"]
    local = [disk for disk in disks if str(disk["model"] or "").strip().lower().startswith(MODEL) and not holds_system(disk)]
    return sorted(local, key=lambda disk: str(disk["path"]))


def holds_system(disk: Device) -> bool:
    """True for the disk under /, as with an ephemeral OS disk on NVMe."""
    return disk["mountpoint"] == "/" or any(holds_system(child) for child in disk.get("children", ()))


def wait_for(count: int) -> list[Device]:
    """The local devices, once there are as many as the VM size has."""
    end = time.monotonic() + WAIT_SECONDS
    run("udevadm", "settle")
    while len(found := local_devices()) < count:
        if time.monotonic() > end:
            raise Refused(f"found {len(found)} of {count} local NVMe devices; the machine is broken: replace it")
        time.sleep(2)
    return found


def state(device: Device) -> str:
    """blank, ours or foreign."""
    kind, label = device["fstype"], str(device["label"] or "")
    if not kind and not device.get("children"):
        return "blank"
    if (kind == "linux_raid_member" and label.endswith(f":{LABEL}")) or (kind == "xfs" and label == LABEL):
        return "ours"
    return "foreign"


def assembled(devices: list[Device]) -> Device | None:
    """Our array where the kernel has put it together, whatever name it got."""
    return next((child for child in devices[0].get("children", ()) if child["type"] == "raid0"), None)


def check_blank(path: str) -> None:
    """Refuse a device that looks blank only because its signature was not yet read into the device database."""
    signatures = run("wipefs", "--noheadings", path).strip()
    if signatures:
        raise Refused(f"{path} was taken for blank but has a signature; reboot: {signatures}")


def make(devices: list[Device]) -> str:
    """Make the filesystem anew; gives the device that holds it."""
    paths = [str(device["path"]) for device in devices]
    array = assembled(devices)
    if array:
        run("mdadm", "--stop", str(array["path"]))
    run("wipefs", "--all", *paths)
    target = paths[0]
    if len(paths) > 1:
        target = ARRAY
        # Under the host name "any" udev assembles the array by its own name, whatever the machine is called.
        named = ("--name", LABEL, "--homehost", "any")
        run("mdadm", "--create", ARRAY, "--run", *named, "--level", "0", "--raid-devices", str(len(paths)), *paths)
    # No discard of the whole device: on 28 TiB it would hold up the first boot.
    run("mkfs.xfs", "-f", "-K", "-L", LABEL, target)
    say(f"made {target} of {len(paths)} devices")
    return target


def prepare(devices: list[Device], keep: bool) -> str:
    """Device that holds the filesystem: found, or made where all devices are blank, or ours and not to be kept."""
    states = {str(device["path"]): state(device) for device in devices}
    foreign = [path for path, found in states.items() if found == "foreign"]
    if foreign:
        raise Refused(f"{', '.join(foreign)} holds data that is not gpufleet's; if it may go, run wipefs --all on it and reboot")
    if "ours" not in states.values():
        for path in states:
            check_blank(path)
        return make(devices)
    if not keep:
        return make(devices)
    if "blank" in states.values():
        raise Refused("some devices of the array are blank, so its data is lost: replace the machine, or run wipefs --all on every device")
    if len(devices) == 1:
        return str(devices[0]["path"])
    if not assembled(devices):
        run("mdadm", "--assemble", ARRAY, *states)
    array = assembled(local_devices())
    if array is None:
        raise Refused("the array does not assemble; see mdadm --examine, or replace the machine")
    # A machine that lost power between the two steps has an array and no filesystem.
    return str(array["path"]) if array["fstype"] else make(local_devices())


def mounted(path: str) -> bool:
    return subprocess.run(("mountpoint", "--quiet", path), check=False).returncode == 0


def mount(device: str, point: str, binds: list[str]) -> None:
    """Mount the filesystem at a point, and a directory of it over each bind."""
    Path(point).mkdir(parents=True, exist_ok=True)
    if not mounted(point):
        # Discards go with deletes: the system's weekly trim looks at /etc/fstab alone.
        run("mount", "-o", "noatime,discard", device, point)
    for bind in binds:
        source = f"{point}/{Path(bind).name}"
        for path in (source, bind):
            Path(path).mkdir(mode=0o711, parents=True, exist_ok=True)
        if not mounted(bind):
            run("mount", "--bind", source, bind)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gpufleet-nvme", description=__doc__)
    parser.add_argument("--devices", type=int, required=True, help="local NVMe devices that the VM size leaves to data")
    parser.add_argument("--mount", required=True, help="where the filesystem goes")
    parser.add_argument("--bind", action="append", default=[], help="directory that lives on it")
    parser.add_argument("--fresh-unless", type=Path, help="file on the OS disk; without it the system is new and so must its data be")
    options = parser.parse_args(arguments[1:])
    try:
        if options.devices < 1:
            raise Refused("the VM size leaves no local NVMe device to data; choose another size")
        if not mounted(options.mount):
            keep = options.fresh_unless is None or options.fresh_unless.exists()
            mount(prepare(wait_for(options.devices), keep), options.mount, options.bind)
        else:
            mount("", options.mount, options.bind)
        if options.fresh_unless:
            options.fresh_unless.parent.mkdir(parents=True, exist_ok=True)
            options.fresh_unless.touch()
    except (Refused, OSError) as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
