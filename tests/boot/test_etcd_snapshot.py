"""Members of an etcd cluster take snapshots in turn, with their own certificate, into the container of their cluster."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from boot_machines import regions

from components.boot import etcd_snapshot
from components.boot.etcd import boot_etcd
from components.plan.model import ClusterPlan, RegionPlan

CLUSTERS = [pytest.param(region, cluster, id=f"{region.name}/{cluster.name}") for region in regions() for cluster in region.clusters]


@pytest.mark.parametrize(("region", "cluster"), CLUSTERS)
def test_turns_of_a_ring_lie_evenly_within_the_hour(region: RegionPlan, cluster: ClusterPlan) -> None:
    ring = cluster.etcd
    minutes = [etcd_snapshot.minute(ring, member) for member in ring.members]
    assert minutes[0] == 0
    assert {later - earlier for earlier, later in pairwise([*minutes, 60])} == {60 // len(minutes)}
    assert 60 // len(minutes) > etcd_snapshot.SLACK_MINUTES, f"{region.name}: a second member would save what the first has saved"
    for member, minute in zip(ring.members, minutes, strict=True):
        boot = boot_etcd(cluster, ring, member)
        assert f"OnCalendar=*:{minute:02d}:00\n" in boot.file(f"/etc/systemd/system/{etcd_snapshot.TIMER}").content
        assert etcd_snapshot.TIMER in boot.enable


@pytest.mark.parametrize(("region", "cluster"), CLUSTERS)
def test_events_are_saved_by_hand_alone(region: RegionPlan, cluster: ClusterPlan) -> None:
    boot = boot_etcd(cluster, cluster.events_etcd, cluster.events_etcd.members[0])
    assert etcd_snapshot.TIMER not in boot.enable, region.name
    assert json.loads(boot.file(etcd_snapshot.MANIFEST).content)["ring"] == "events"


@pytest.mark.parametrize(("region", "cluster"), CLUSTERS)
def test_the_program_is_told_the_container_that_the_region_makes(region: RegionPlan, cluster: ClusterPlan) -> None:
    result = json.loads(boot_etcd(cluster, cluster.etcd, cluster.etcd.members[1]).file(etcd_snapshot.MANIFEST).content)
    assert result["container"] == f"https://{region.backup.account}.blob.core.windows.net/{cluster.backup_container}"
    assert result["certificate"] == "/etc/etcd/etcd-1-cert.pem"
    assert result["identity"] == cluster.identity("etcd").id
