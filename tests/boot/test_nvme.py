"""The program that creates the filesystem on local NVMe, run with fakes of the system tools over simulated devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "components/boot/files/nvme.py"
MODEL = "Microsoft NVMe Direct Disk v2"
TOOLS = ("lsblk", "mdadm", "mkfs.xfs", "wipefs", "mount", "mountpoint", "udevadm")
STAND_IN = '''#!{python}
"""Acts as the tool that it is called by, on the devices in world.json, and writes down each call that changes something."""
import json, pathlib, sys
tool, arguments = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
state = pathlib.Path({state!r})
world = json.loads(state.read_text())
disks = {{disk["path"]: disk for disk in world["disks"]}}
plain = [argument for argument in arguments if argument.startswith("/dev/")]
array = lambda: next((child for disk in world["disks"] for child in disk.get("children", []) if child["type"] == "raid0"), None)
if tool == "lsblk":
    print(json.dumps({{"blockdevices": world["disks"]}}))
elif tool == "wipefs" and "--noheadings" in arguments:
    print(world.get("signatures", {{}}).get(plain[0], ""))
elif tool == "mountpoint":
    sys.exit(0 if arguments[-1] in world["mounts"] else 1)
elif tool != "udevadm":
    world["calls"].append(" ".join([tool, *arguments]))
    if tool == "mdadm" and world.get("mdadm fails"):
        state.write_text(json.dumps(world))
        sys.exit("mdadm: cannot open device")
    if tool == "mdadm" and arguments[0] == "--stop":
        for disk in world["disks"]:
            disk.pop("children", None)
    elif tool == "mdadm":
        kept = world.get("array") if arguments[0] == "--assemble" else None
        child = {{"path": "/dev/md127", "type": "raid0", "model": None, "fstype": kept, "label": None, "mountpoint": None}}
        for path in plain[1:]:
            disks[path].update(fstype="linux_raid_member", label="any:gpufleet", children=[child])
    elif tool == "wipefs":
        for path in plain:
            disks[path].update(fstype=None, label=None)
            disks[path].pop("children", None)
    elif tool == "mkfs.xfs":
        target = disks.get(plain[0]) or array()
        for disk in world["disks"]:
            for child in disk.get("children", []):
                child.update(fstype="xfs", label="gpufleet")
        target.update(fstype="xfs", label="gpufleet")
    elif tool == "mount":
        world["mounts"].append(arguments[-1])
    state.write_text(json.dumps(world))
'''


class Machine:
    """A machine's devices, and the program that is run on it."""

    def __init__(self, folder: Path, disks: list[dict[str, Any]]) -> None:
        self.folder, self.state = folder, folder / "world.json"
        self.state.write_text(json.dumps({"disks": disks, "mounts": [], "calls": []}))
        self.tools = folder / "tools"
        self.tools.mkdir()
        for tool in TOOLS:
            (self.tools / tool).write_text(STAND_IN.format(python=sys.executable, state=str(self.state)))
            (self.tools / tool).chmod(0o755)

    @property
    def world(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.state.read_text())
        return found

    def change(self, **changes: object) -> None:
        """Change the simulated devices."""
        self.state.write_text(json.dumps(self.world | changes))

    def calls(self) -> list[str]:
        """Return the changes of devices and mounts since the last call, with shortened paths."""
        calls = [call.replace(str(self.folder), "") for call in self.world["calls"]]
        self.change(calls=[])
        return calls

    def reboot(self, *, redeployed: bool = False) -> None:
        """Unmount and take the array apart; a redeploy empties the devices too."""
        disks = [blank(disk["path"]) if redeployed else disk for disk in self.world["disks"]]
        array = next((child["fstype"] for disk in disks for child in disk.pop("children", [])), self.world.get("array"))
        self.change(disks=disks, mounts=[], array=array)

    def run(self, devices: int, *flags: str, wait: float = 5) -> tuple[int, str]:
        """Status and message of the program."""
        environment = {"PATH": f"{self.tools}:{os.environ['PATH']}", "GPUFLEET_NVME_WAIT_SECONDS": str(wait)}
        command = (sys.executable, str(PROGRAM), f"--devices={devices}", f"--mount={self.folder}/data", *flags)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr.strip()


def blank(path: str, model: str = MODEL) -> dict[str, Any]:
    """A device without a signature."""
    return {"path": path, "type": "disk", "model": model, "fstype": None, "label": None, "mountpoint": None}


SYSTEM: dict[str, Any] = blank("/dev/sda", "Virtual Disk") | {
    "children": [{"path": "/dev/sda1", "type": "part", "model": None, "fstype": "ext4", "label": None, "mountpoint": "/"}]
}
REMOTE = blank("/dev/nvme9n1", "MSFT NVMe Accelerator v1.0")
TWO = [blank("/dev/nvme0n1"), blank("/dev/nvme1n1")]
CREATE = "mdadm --create /dev/md/gpufleet --run --name gpufleet --homehost any --level 0 --raid-devices 2 /dev/nvme0n1 /dev/nvme1n1"


def test_several_blank_devices_become_one_filesystem_with_directories_over_their_places(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [SYSTEM, REMOTE, *TWO])
    assert machine.run(2, f"--bind={tmp_path}/containerd") == (0, "gpufleet-nvme: made /dev/md/gpufleet of 2 devices")
    assert machine.calls() == [
        "wipefs --all /dev/nvme0n1 /dev/nvme1n1",
        CREATE,
        "mkfs.xfs -f -K -L gpufleet /dev/md/gpufleet",
        "mount -o noatime,discard /dev/md/gpufleet /data",
        "mount --bind /data/containerd /containerd",
    ]


def test_a_single_device_gets_a_filesystem_without_an_array(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [SYSTEM, blank("/dev/nvme0n1", "Microsoft NVMe Direct Disk              ")])
    assert machine.run(1)[0] == 0
    assert machine.calls() == [
        "wipefs --all /dev/nvme0n1",
        "mkfs.xfs -f -K -L gpufleet /dev/nvme0n1",
        "mount -o noatime,discard /dev/nvme0n1 /data",
    ]


@pytest.mark.parametrize("disks", [TWO, TWO[:1]])
def test_a_second_run_changes_nothing(disks: list[dict[str, Any]], tmp_path: Path) -> None:
    machine = Machine(tmp_path, disks)
    assert machine.run(len(disks), f"--bind={tmp_path}/containerd")[0] == 0
    assert machine.calls()
    assert machine.run(len(disks), f"--bind={tmp_path}/containerd") == (0, "")
    assert machine.calls() == []


@pytest.mark.parametrize(
    ("disks", "expected"),
    [
        (TWO, ["mdadm --assemble /dev/md/gpufleet /dev/nvme0n1 /dev/nvme1n1", "mount -o noatime,discard /dev/md127 /data"]),
        (TWO[:1], ["mount -o noatime,discard /dev/nvme0n1 /data"]),
    ],
)
def test_after_a_reboot_the_data_is_mounted_and_nothing_is_made_anew(
    disks: list[dict[str, Any]], expected: list[str], tmp_path: Path
) -> None:
    machine = Machine(tmp_path, disks)
    assert machine.run(len(disks))[0] == 0
    machine.calls()
    machine.reboot()
    assert machine.run(len(disks)) == (0, "")
    assert machine.calls() == expected


def test_a_redeployed_machine_gets_a_new_filesystem_on_its_empty_devices(tmp_path: Path) -> None:
    machine = Machine(tmp_path, TWO)
    assert machine.run(2)[0] == 0
    machine.reboot(redeployed=True)
    machine.calls()
    assert machine.run(2)[0] == 0
    assert CREATE in machine.calls()


def test_a_reimaged_node_starts_with_fresh_data_and_a_rebooted_one_keeps_its_own(tmp_path: Path) -> None:
    machine, marker = Machine(tmp_path, TWO), tmp_path / "os-disk/nvme"
    flag = f"--fresh-unless={marker}"
    assert machine.run(2, flag)[0] == 0
    machine.reboot()
    machine.calls()
    assert machine.run(2, flag) == (0, "")
    assert not [call for call in machine.calls() if call.startswith("mkfs")]
    marker.unlink()
    machine.change(mounts=[])
    assert machine.run(2, flag)[0] == 0
    assert machine.calls()[:3] == ["mdadm --stop /dev/md127", "wipefs --all /dev/nvme0n1 /dev/nvme1n1", CREATE]


@pytest.mark.parametrize(
    "foreign",
    [
        {"fstype": "ext4", "label": "somebody"},
        {"fstype": "xfs", "label": "somebody"},
        {"fstype": "linux_raid_member", "label": "host:128"},
        {"children": [{"path": "/dev/nvme1n1p1", "type": "part", "model": None, "fstype": None, "label": None, "mountpoint": None}]},
    ],
)
@pytest.mark.parametrize("flags", [[], ["--fresh-unless=/nowhere/marker"]])
def test_data_of_somebody_else_is_refused_and_left_alone(foreign: dict[str, Any], flags: list[str], tmp_path: Path) -> None:
    machine = Machine(tmp_path, [TWO[0], TWO[1] | foreign])
    status, message = machine.run(2, *flags)
    assert status == 1
    assert message.startswith("gpufleet-nvme: /dev/nvme1n1 holds data that is not gpufleet's; if it may go, run wipefs --all on it")
    assert machine.calls() == []


def test_a_device_that_only_looks_blank_is_left_alone(tmp_path: Path) -> None:
    machine = Machine(tmp_path, TWO[:1])
    machine.change(signatures={"/dev/nvme0n1": "nvme0n1 0x0 xfs gpufleet"})
    assert machine.run(1)[0] == 1
    assert machine.calls() == []


def test_an_array_that_lost_a_device_is_refused_and_left_alone(tmp_path: Path) -> None:
    machine = Machine(tmp_path, TWO)
    assert machine.run(2)[0] == 0
    machine.reboot()
    machine.change(disks=[machine.world["disks"][0], blank("/dev/nvme1n1")], calls=[])
    status, message = machine.run(2)
    assert (status, "its data is lost" in message) == (1, True)
    assert machine.calls() == []


def test_an_array_on_which_no_filesystem_was_made_yet_is_finished(tmp_path: Path) -> None:
    machine = Machine(tmp_path, TWO)
    assert machine.run(2)[0] == 0
    machine.reboot()
    machine.change(array=None, calls=[])
    assert machine.run(2)[0] == 0
    assert "mkfs.xfs -f -K -L gpufleet /dev/md/gpufleet" in machine.calls()


def test_the_disk_that_holds_the_system_is_never_taken_for_data(tmp_path: Path) -> None:
    system = SYSTEM | {"path": "/dev/nvme0n1", "model": MODEL}
    machine = Machine(tmp_path, [system, blank("/dev/nvme1n1")])
    assert machine.run(1)[0] == 0
    assert not [call for call in machine.calls() if "/dev/nvme0n1" in call]


def test_a_missing_device_is_waited_for_and_then_named_a_fault_of_the_machine(tmp_path: Path) -> None:
    machine = Machine(tmp_path, TWO)
    status, message = machine.run(8, wait=0.1)
    assert (status, message) == (1, "gpufleet-nvme: found 2 of 8 local NVMe devices; the machine is broken: replace it")
    assert machine.calls() == []


def test_a_failing_tool_is_named_with_what_it_said(tmp_path: Path) -> None:
    machine = Machine(tmp_path, TWO)
    machine.change(**{"mdadm fails": True})
    status, message = machine.run(2)
    assert status == 1
    assert message.endswith("failed with 1: mdadm: cannot open device")
