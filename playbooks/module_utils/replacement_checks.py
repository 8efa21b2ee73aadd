"""Checks of the replacement of an etcd member: whether it is safe now, and whether it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible.module_utils.etcd_cluster import MemberRefusedError, quorum

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
    """Raise MemberRefusedError for a replacement that the cluster could not survive, or that is not needed.

    members maps planned names to URLs. health maps the other members to "" or their fault. listed is the cluster's list of members by peer
    URL. note is the replacement in progress, or None. present is whether the target's disk has a member's data, None where its machine does
    not answer.
    """
    others = [name for name in members if name != target]
    ill = {name: reason for name, reason in health.items() if reason}
    healthy = len(others) - len(ill)
    if note and note["member"] != target:
        raise MemberRefusedError(
            f"a replacement of {note['member']} is in progress since {note['began']}",
            f"Run the playbook with member={note['member']} first: it continues",
        )
    if healthy < quorum(len(members)):
        raise MemberRefusedError(
            f"{target} cannot be replaced: {quorum(len(members))} of the cluster's {len(members)} members must answer beside it, "
            f"and {healthy} do ({answers(ill)})",
            "Repair those first; if their data is lost, restore the cluster: docs/runbooks/etcd-quorum-lost.md",
        )
    if ill:
        raise MemberRefusedError(
            f"{target} is not replaced while another member is not healthy: without both, one more failure could stop the cluster "
            f"({answers(ill)})",
            "Repair that one first: docs/runbooks/etcd-member-lost.md",
        )
    planned = {member["peer_url"]: name for name, member in members.items()}
    for url, entry in listed.items():
        name = planned.get(url)
        if name is None:
            raise MemberRefusedError(
                "the cluster lists a member at {} ({}), which is not planned".format(url, entry["id"]),
                "Another operator may be working; if not, remove it: etcdctl member remove {}".format(entry["id"]),
            )
        if name != target and (entry["learner"] or not entry["started"]):
            raise MemberRefusedError(
                f"{name} is listed, but only as a learner: its replacement is in progress",
                f"Run the playbook with member={name} first: it continues",
            )
    missing = [name for url, name in planned.items() if url not in listed and name != target]
    if missing:
        raise MemberRefusedError(f"{missing[0]} is no member of the cluster", f"Run the playbook with member={missing[0]} first")
    if note is None and present is None:
        raise MemberRefusedError(
            f"the machine of {target} does not answer, so the content of its disk is unknown",
            "Bring it back, or set action=redeploy: that gives it an empty disk on another host",
        )


def needed(action: str, discard: bool, present: bool | None, health: str, entry: Mapping[str, Any] | None) -> bool:
    """Return whether to replace the target: not if it is a healthy voter with its data, unless the operator requested it.

    MemberRefusedError where its disk has data that the operator did not discard.
    """
    if action != "none" or discard:
        return True
    if not health and entry is not None and not entry["learner"]:
        return False
    if present:
        raise MemberRefusedError(
            "the member's disk is not empty, but it answers: %s" % (health or "as a learner without a recorded replacement"),
            "Look at its journal and start it; to discard its data, set discard=true",
        )
    return True


def answers(ill: Mapping[str, str]) -> str:
    """Return the faults of unhealthy members as text."""
    return "; ".join("{} answers: {}".format(*item) for item in sorted(ill.items()))
