"""A member whose disk is empty is replaced under writes, whatever stops the playbook half-way; what the ring could not bear is refused."""

from __future__ import annotations

from etcd_machines import UNIT, Ring, Writer

PROMOTE, JUDGE = "Promote the member once it has caught up", "Judge the whole ring"


def test_a_replacement_under_writes_goes_on_wherever_it_was_killed_and_loses_nothing_acknowledged(ring: Ring) -> None:
    name, other = ring.names[2], ring.names[1]
    with Writer(ring) as writer:
        ring.machines[name].wipe_nvme()
        for step in ("Remove the old member", "Add the member as a learner", "Let the member in", PROMOTE):
            ring.play("etcd-replace.yml", member=name, stop_before=step)
        refused = ring.play("etcd-replace.yml", member=other, discard=True)
        # A learner that started and lost its disk again has forgotten what it agreed to: it is added anew.
        ring.machines[name].services[UNIT].wait_ready(60)
        ring.machines[name].wipe_nvme()
        ring.play("etcd-replace.yml", member=name, stop_before=JUDGE)
        run = ring.play("etcd-replace.yml", member=name)
    assert refused.status != 0
    assert f"a replacement of {name} is under way" in refused.said
    assert f"Run the playbook with member={name} first" in refused.said
    assert run.status == 0, run.output
    assert f"{name} was replaced; 3 members are healthy and alike" in run.said
    assert ring.voters() == ring.names
    assert len(writer.acknowledged) > 10
    assert writer.lost() == []
    assert ring.etcdctl("get", "/gpufleet/", "--prefix") == ""


def test_a_replacement_of_a_member_that_is_well_changes_nothing(ring: Ring) -> None:
    again = ring.play("etcd-replace.yml", member=ring.names[2])
    assert again.status == 0, again.output
    assert f"{ring.names[2]} needed no replacement" in again.said
    assert "changed=0" in again.said
    assert "changed=1" not in again.said
    assert ring.etcdctl("get", "/gpufleet/", "--prefix") == ""


def test_two_empty_members_are_refused_with_what_each_answers(ring: Ring) -> None:
    first, second = ring.names[1:]
    places = {name: ring.machines[name].path("/var/lib/etcd/data") for name in (first, second)}
    for name, place in places.items():
        ring.machines[name].kill()
        place.rename(place.with_name("kept"))
        ring.machines[name].start()
    refused = ring.play("etcd-replace.yml", member=second)
    for name, place in places.items():
        ring.machines[name].kill()
        place.with_name("kept").rename(place)
        ring.machines[name].start()
    ring.wait_ready()
    assert refused.status != 0
    assert "2 of the ring's 3 members must answer beside it, and 0 do" in refused.said
    assert f"{first} answers: " in refused.said
    assert "docs/runbooks/etcd-quorum-lost.md" in refused.said


def test_a_member_that_holds_data_is_given_up_only_where_that_is_said(ring: Ring) -> None:
    name = ring.names[1]
    ring.machines[name].services[UNIT].stop()
    refused = ring.play("etcd-replace.yml", member=name)
    assert refused.status != 0
    assert "the member's disk is not empty" in refused.said
    assert "say discard=true" in refused.said
    run = ring.play("etcd-replace.yml", member=name, discard=True)
    assert run.status == 0, run.output
    assert ring.voters() == ring.names
    assert ring.etcdctl("get", "/gpufleet/", "--prefix") == ""


def test_a_member_that_is_not_planned_is_refused(ring: Ring) -> None:
    refused = ring.play("etcd-replace.yml", member="dev-etcd-9")
    assert refused.status != 0
    assert "dev-etcd-9 is no planned member of the ring" in refused.said
