"""The inventory is the plan's: who is in an etcd cluster, where, and with which keys."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from components.machine_profile import ADMIN_USER
from stacks.load import load_plan

PROGRAM = Path(__file__).parents[2] / "playbooks/inventory/etcd.py"


def printed(**variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], **variables}
    return subprocess.run([sys.executable, str(PROGRAM), "--list"], env=environment, capture_output=True, text=True, check=False)


def test_every_planned_member_is_a_host_of_its_etcd_cluster() -> None:
    found = json.loads(printed(GPUFLEET_REGION="dev", GPUFLEET_API_SERVERS='{"dev": ["10.55.130.5"]}').stdout)
    cluster = load_plan("dev").clusters[0]
    for etcd in (cluster.etcd, cluster.events_etcd):
        group = found[f"dev_{etcd.role}"]
        assert group["hosts"] == [member.name for member in etcd.members]
        assert [member["client_url"] for member in group["vars"]["etcd_members"]] == list(etcd.client_urls)
        for member in etcd.members:
            host = found["_meta"]["hostvars"][member.name]
            assert (host["ansible_host"], host["ansible_user"]) == (member.address, ADMIN_USER)
            assert host["etcd_key"] == f"/etc/etcd/{etcd.role}-{member.member}-key.pem"
    assert found["dev_api"]["hosts"] == ["10.55.130.5"]


def test_a_region_that_is_missing_or_unknown_is_told_in_a_sentence() -> None:
    missing, unknown, wrong = printed(), printed(GPUFLEET_REGION="nowhere"), printed(GPUFLEET_REGION="dev", GPUFLEET_API_SERVERS="10.0.0.1")
    assert (missing.returncode, unknown.returncode, wrong.returncode) == (1, 1, 1)
    assert "name the region, for example GPUFLEET_REGION=dev" in missing.stderr
    assert "nowhere" in unknown.stderr
    assert "is no JSON object of addresses by cluster" in wrong.stderr
    assert "Traceback" not in missing.stderr + unknown.stderr + wrong.stderr
