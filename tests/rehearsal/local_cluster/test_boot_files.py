"""Custom data is read back as the files and units that were rendered, and bad custom data is refused with the machine and the reason."""

from __future__ import annotations

import base64

import pytest

from components.boot.api_server import boot_api_server
from components.boot.etcd import boot_etcd
from components.boot.machine import MachineBoot, custom_data
from rehearsal.local_cluster.boot_files import BootFilesError, read_boot
from stacks.load import load_plan

GOOD = """\
#cloud-config
write_files:
- path: /etc/a
  owner: root:root
  permissions: "0644"
  content: |
    text
runcmd:
- [systemctl, daemon-reload]
- [systemctl, enable, --now, --no-block, a.service]
"""


def _data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _boots() -> list[MachineBoot]:
    plan = load_plan("dev")
    (cluster,) = plan.clusters
    return [boot_etcd(cluster, cluster.etcd, cluster.etcd.members[0]), boot_api_server(plan, cluster)]


@pytest.mark.parametrize("boot", _boots(), ids=lambda boot: boot.role)
def test_what_was_rendered_is_what_is_read(boot: MachineBoot) -> None:
    found = read_boot("m", custom_data(boot))
    assert [(one.path, one.content, f"{one.mode:04o}", one.owner) for one in found.files] == [
        (one.path, one.content, one.mode, one.owner) for one in boot.files
    ]
    assert found.enabled == boot.enable
    assert found.content(boot.files[0].path) == boot.files[0].content


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("%%%", "base64"),
        (base64.b64encode(b"\xff\xfe").decode(), "base64 of a text"),
        (_data("#!/bin/sh\n"), "begins with '#!/bin/sh"),
        (_data("#cloud-config\na: [\n"), "no YAML"),
        (_data("#cloud-config\n- a\n"), "exactly"),
        (_data(GOOD + "packages: [x]\n"), "packages"),
        (_data(GOOD.replace("  owner: root:root\n", "")), "write_files[0] needs exactly"),
        (_data(GOOD.replace('"0644"', "0644")), "must be a string"),
        (_data(GOOD.replace('"0644"', '"0849"')), "octal"),
        (_data(GOOD.replace("/etc/a", "etc/a")), "absolute path"),
        (_data(GOOD.replace("/etc/a", "/etc/../a")), "absolute path"),
        (_data(GOOD.replace("runcmd:", GOOD[GOOD.index("- path") : GOOD.index("runcmd:")] + "runcmd:")), "written twice"),
        (_data(GOOD.replace("daemon-reload", "reboot")), "runcmd needs"),
        (_data(GOOD.replace("enable, --now", "mask")), "runcmd[1]"),
        (_data(GOOD.replace(", a.service", "")), "names no units"),
        (_data(GOOD.replace("a.service", "--force, a.service")), "an option"),
        (_data(GOOD.replace("a.service", "a.service, a.service")), "twice"),
    ],
)
def test_bad_custom_data_is_refused_with_the_machine_and_the_reason(data: str, why: str) -> None:
    with pytest.raises(BootFilesError) as refused:
        read_boot("dev-etcd-0", data)
    assert refused.value.where == "dev-etcd-0"
    assert why in refused.value.why
    assert "components/boot/machine.py" in str(refused.value)
