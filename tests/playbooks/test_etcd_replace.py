"""Replacement of an etcd member under writes, with interruptions at any step; unsafe replacements are refused."""

from __future__ import annotations

from etcd_machines import UNIT, EtcdMachines, Writer

PROMOTE, JUDGE = "Promote the member once it has caught up", "Judge the whole cluster"


def test_a_replacement_under_writes_goes_on_wherever_it_was_killed_and_loses_nothing_acknowledged(etcd: EtcdMachines) -> None:
    name, other = etcd.names[2], etcd.names[1]
    with Writer(etcd) as writer:
        etcd.machines[name].wipe_nvme()
        for step in ("Remove the old member", "Add the member as a learner", "Write the join file", PROMOTE):
            etcd.play("etcd-replace.yml", member=name, stop_before=step)
        refused = etcd.play("etcd-replace.yml", member=other, discard=True)
        # A learner that started and lost its disk again has forgotten what it agreed to: it is added anew.
        etcd.machines[name].services[UNIT].wait_ready(60)
        etcd.machines[name].wipe_nvme()
        etcd.play("etcd-replace.yml", member=name, stop_before=JUDGE)
        run = etcd.play("etcd-replace.yml", member=name)
    assert refused.status != 0
    assert f"a replacement of {name} is in progress" in refused.said
    assert f"Run the playbook with member={name} first" in refused.said
    assert run.status == 0, run.output
    assert f"{name} was replaced; 3 members are healthy and alike" in run.said
    assert etcd.voters() == etcd.names
    assert len(writer.acknowledged) > 10
    assert writer.lost() == []
    assert etcd.etcdctl("get", "/gpufleet/", "--prefix") == ""


def test_a_replacement_of_a_member_that_is_well_changes_nothing(etcd: EtcdMachines) -> None:
    again = etcd.play("etcd-replace.yml", member=etcd.names[2])
    assert again.status == 0, again.output
    assert f"{etcd.names[2]} needed no replacement" in again.said
    assert "changed=0" in again.said
    assert "changed=1" not in again.said
    assert etcd.etcdctl("get", "/gpufleet/", "--prefix") == ""


def test_two_empty_members_are_refused_with_what_each_answers(etcd: EtcdMachines) -> None:
    first, second = etcd.names[1:]
    places = {name: etcd.machines[name].path("/var/lib/etcd/data") for name in (first, second)}
    for name, place in places.items():
        etcd.machines[name].kill()
        place.rename(place.with_name("kept"))
        etcd.machines[name].start()
    refused = etcd.play("etcd-replace.yml", member=second)
    for name, place in places.items():
        etcd.machines[name].kill()
        place.with_name("kept").rename(place)
        etcd.machines[name].start()
    etcd.wait_ready()
    assert refused.status != 0
    assert "2 of the cluster's 3 members must answer beside it, and 0 do" in refused.said
    assert f"{first} answers: " in refused.said
    assert "docs/runbooks/etcd-quorum-lost.md" in refused.said


def test_a_member_that_holds_data_is_given_up_only_where_that_is_said(etcd: EtcdMachines) -> None:
    name = etcd.names[1]
    etcd.machines[name].services[UNIT].stop()
    refused = etcd.play("etcd-replace.yml", member=name)
    assert refused.status != 0
    assert "the member's disk is not empty" in refused.said
    assert "set discard=true" in refused.said
    run = etcd.play("etcd-replace.yml", member=name, discard=True)
    assert run.status == 0, run.output
    assert etcd.voters() == etcd.names
    assert etcd.etcdctl("get", "/gpufleet/", "--prefix") == ""


def test_a_member_that_is_not_planned_is_refused(etcd: EtcdMachines) -> None:
    refused = etcd.play("etcd-replace.yml", member="dev-etcd-9")
    assert refused.status != 0
    assert "dev-etcd-9 is no planned member of the cluster" in refused.said
