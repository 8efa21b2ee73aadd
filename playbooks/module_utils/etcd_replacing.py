"""Decides whether a member of an etcd ring may be replaced now, and what its replacement still needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible.module_utils.etcd_ring import MemberRefusedError, quorum

if TYPE_CHECKING:
    from collections.abc import Mapping


def judge(
    members: Mapping[str, Mapping[str, str]],
    target: str,
    health: Mapping[str, str],
    listed: Mapping[str, Mapping[str, Any]],
    note: Mapping[str, Any] | None,
    present: bool | None,
) -> None:
    """Refuse a replacement that the ring could not bear, or that is none.

    members maps planned names to URLs; health maps the other members to "" or what is wrong with them; listed is what the ring lists, by
    peer URL; note is the replacement under way or None; present says whether the target's disk holds a member's data, None where its
    machine does not answer.
    """
    others = [name for name in members if name != target]
    ill = {name: reason for name, reason in health.items() if reason}
    healthy = len(others) - len(ill)
    if note and note["member"] != target:
        raise MemberRefusedError(
            f"a replacement of {note['member']} is under way, begun {note['began']}",
            f"Run the playbook with member={note['member']} first: it goes on where it was",
        )
    if healthy < quorum(len(members)):
        raise MemberRefusedError(
            f"{target} cannot be replaced: {quorum(len(members))} of the ring's {len(members)} members must answer beside it, "
            f"and {healthy} do ({answers(ill)})",
            "Mend those first; where their data is lost, restore the ring: docs/runbooks/etcd-quorum-lost.md",
        )
    if ill:
        raise MemberRefusedError(
            f"{target} is not replaced while another member is not healthy: without both, one more failure could stop the ring "
            f"({answers(ill)})",
            "Mend that one first: docs/runbooks/etcd-member-lost.md",
        )
    planned = {member["peer_url"]: name for name, member in members.items()}
    for url, entry in listed.items():
        name = planned.get(url)
        if name is None:
            raise MemberRefusedError(
                "the ring lists a member at {} ({}), which is not planned".format(url, entry["id"]),
                "Somebody else is at work; if not, remove it: etcdctl member remove {}".format(entry["id"]),
            )
        if name != target and (entry["learner"] or not entry["started"]):
            raise MemberRefusedError(
                f"{name} is listed, but only as a learner: its replacement is under way",
                f"Run the playbook with member={name} first: it goes on where it was",
            )
    missing = [name for url, name in planned.items() if url not in listed and name != target]
    if missing:
        raise MemberRefusedError(f"{missing[0]} is no member of the ring", f"Run the playbook with member={missing[0]} first")
    if note is None and present is None:
        raise MemberRefusedError(
            f"the machine of {target} does not answer, so that nobody knows what is on its disk",
            "Bring it back, or say action=redeploy: that gives it an empty disk on another host",
        )


def needed(action: str, discard: bool, present: bool | None, health: str, entry: Mapping[str, Any] | None) -> bool:
    """Whether the target is to be replaced at all: not one that is a healthy voter with its data, unless that was asked for.

    MemberRefusedError where its disk holds data that nobody gave up.
    """
    if action != "none" or discard:
        return True
    if not health and entry is not None and not entry["learner"]:
        return False
    if present:
        raise MemberRefusedError(
            "the member's disk is not empty, but it answers: %s" % (health or "as a learner that nobody began"),
            "Look at its journal and start it; to give its data up, say discard=true",
        )
    return True


def answers(ill: Mapping[str, str]) -> str:
    """What members that are not healthy say, in words."""
    return "; ".join("{} answers: {}".format(*item) for item in sorted(ill.items()))
