#!/usr/bin/python
"""Ansible module: one step of the replacement of an etcd member, run on another member's machine; completed steps change nothing."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.etcd_cluster import EtcdCluster, MemberRefusedError, last_line, wait
from ansible.module_utils.replacement_checks import judge, needed

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCUMENTATION = r"""
module: etcd_replacement
short_description: One step of the replacement of an etcd member
description:
  - Runs on the machine of a healthy member of the cluster. Each step checks the state first, so that completed steps change nothing.
  - The cluster stores a note of the replacement in progress, so that a second run continues it and another replacement is refused.
author: gpufleet
options:
  step: {description: The step., type: str, required: true, choices: [begin, remove, emptied, add, promote, verify]}
  member: {description: Name of the member that is replaced., type: str, required: true}
  members: {description: Every planned member with name, client_url and peer_url., type: list, elements: dict, required: true}
  etcdctl: {description: Path of etcdctl., type: path, required: true}
  authority: {description: Certificate of the cluster's authority., type: path, required: true}
  certificate: {description: Certificate of the machine's member., type: path, required: true}
  key: {description: Key of the machine's member., type: path, required: true}
  present: {description: Whether the replaced member's disk holds data; unset if unknown., type: bool}
  action: {description: Action on the machine in Azure., type: str, choices: [none, redeploy], default: none}
  discard: {description: Whether data on the replaced member's disk may be deleted., type: bool, default: false}
  answer_seconds: {description: Time limit of an answer., type: int, default: 5}
  wait_seconds: {description: Time limit for a learner to catch up., type: int, default: 900}
"""

RETURN = r"""
needed: {description: Whether there is anything to replace., type: bool, returned: with begin}
emptied: {description: Whether the disk was emptied by this replacement already., type: bool, returned: with begin}
environment: {description: Lines of the join file., type: list, elements: str, returned: with add}
removed: {description: Id of the member that was removed., type: str, returned: with remove}
verdict: {description: Final state of the cluster., type: dict, returned: with verify}
"""

ARGUMENTS = {
    "step": {"type": "str", "required": True, "choices": ["begin", "remove", "emptied", "add", "promote", "verify"]},
    "member": {"type": "str", "required": True},
    "members": {"type": "list", "elements": "dict", "required": True},
    "etcdctl": {"type": "path", "required": True},
    "authority": {"type": "path", "required": True},
    "certificate": {"type": "path", "required": True},
    "key": {"type": "path", "required": True, "no_log": False},
    "present": {"type": "bool"},
    "action": {"type": "str", "choices": ["none", "redeploy"], "default": "none"},
    "discard": {"type": "bool", "default": False},
    "answer_seconds": {"type": "int", "default": 5},
    "wait_seconds": {"type": "int", "default": 900},
}


class Replacement:
    """The replacement of one member of one etcd cluster."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.given, self.cluster, self.target = parameters, EtcdCluster(parameters), parameters["member"]
        if self.target not in self.cluster.members:
            raise MemberRefusedError(
                f"{self.target} is no planned member of the cluster", "Planned are: {}".format(", ".join(self.cluster.members))
            )
        self.others = [name for name in self.cluster.members if name != self.target]
        self.peer_url = self.cluster.members[self.target]["peer_url"]

    def entry(self) -> dict[str, Any] | None:
        """Return the target's entry in the cluster's list, or None."""
        return self.cluster.listed(self.others).get(self.peer_url)

    def begin(self) -> dict[str, Any]:
        """Record the start of the replacement; MemberRefusedError if the cluster could not survive it."""
        health = self.cluster.health(list(self.cluster.members))
        own = health.pop(self.target)
        healthy = [name for name, reason in health.items() if not reason]
        asked = bool(healthy)
        listed = self.cluster.listed(healthy) if asked else {}
        note = self.cluster.note(healthy) if asked else None
        present = self.given["present"] if self.given["action"] == "none" else bool(self.given["present"])
        judge(self.cluster.members, self.target, health, listed, note, present)
        if note:
            return {"changed": False, "needed": True, "emptied": note["emptied"]}
        if not needed(self.given["action"], self.given["discard"], present, own, listed.get(self.peer_url)):
            return {"changed": False, "needed": False, "emptied": False}
        empty = self.given["action"] == "none" and not present
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
        self.cluster.begin(healthy, {"member": self.target, "began": now, "emptied": empty})
        return {"changed": True, "needed": True, "emptied": empty}

    def remove(self) -> dict[str, Any]:
        """Remove the old member from the cluster's list."""
        entry = self.entry()
        # A member that is no longer a voter, or has not started yet, is the new one.
        if entry is None or entry["learner"] or (self.cluster.note(self.others)["emptied"] and self.given["present"] is not False):
            return {"changed": False, "removed": ""}
        self.cluster.reconfigure(("member", "remove", entry["id"]), self.cluster.urls(without=self.target))
        return {"changed": True, "removed": entry["id"]}

    def emptied(self) -> dict[str, Any]:
        """Record that the target's disk is empty, or has only data written since."""
        note = self.cluster.note(self.others)
        self.cluster.write(self.others, {**note, "emptied": True})
        return {"changed": not note["emptied"]}

    def add(self) -> dict[str, Any]:
        """Add the target as a learner.

        A target that started and lost its disk again is removed and added anew, because it has forgotten its votes.
        """
        entry, changed = self.entry(), False
        # It may have started since its disk was checked.
        if entry and entry["started"] and not self.given["present"] and not self.cluster.statuses([self.target]):
            self.cluster.reconfigure(("member", "remove", entry["id"]), self.cluster.urls(without=self.target))
            entry = None
        if entry is None and self.given["present"]:
            # Its data is from a member that the cluster has removed: etcd would exit at each start.
            self.cluster.write(self.others, {**self.cluster.note(self.others), "emptied": False})
            raise MemberRefusedError(
                f"the disk of {self.target} holds data of a member that the cluster has removed", "Run the playbook again: it empties it"
            )
        if entry is None:
            words = ("member", "add", self.target, "--learner", f"--peer-urls={self.peer_url}")
            self.cluster.reconfigure(words, self.cluster.urls(without=self.target))
            changed = True
        listed = {url: item["name"] or self.target for url, item in self.cluster.listed(self.others).items()}
        cluster = ",".join(f"{name}={url}" for url, name in sorted(listed.items(), key=lambda item: item[1]))
        lines = ["ETCD_INITIAL_CLUSTER_STATE=existing", f"ETCD_INITIAL_CLUSTER={cluster}"]
        return {"changed": changed, "environment": lines}

    def promote(self) -> dict[str, Any]:
        """Promote the learner once it has caught up; etcd refuses a learner that has not."""
        entry = self.entry()
        if entry is None:
            raise MemberRefusedError(f"{self.target} is not listed any more", "Run the playbook again: it adds the member")
        if not entry["learner"]:
            return {"changed": False}
        words = ("member", "promote", entry["id"])

        def step() -> str:
            status, _said, error = self.cluster.run(words, self.cluster.urls(without=self.target))
            entry = self.entry()
            return "" if status == 0 or (entry and not entry["learner"]) else f"{self.target} has not caught up ({last_line(error)})"

        wait(self.given["wait_seconds"], step, "Look at its journal (journalctl -u etcd) and run the playbook again: it continues")
        return {"changed": True}

    def verify(self) -> dict[str, Any]:
        """Verify that every planned member votes, is healthy and has the same data; return the verdict."""
        found: dict[str, Any] = {}

        def step() -> str:
            found.clear()
            found.update(self.cluster.verdict())
            return str(found["fault"])

        wait(
            min(self.given["wait_seconds"], 60),
            step,
            "Run the playbook again; if the fault persists, see docs/runbooks/etcd-member-lost.md",
        )
        noted = self.cluster.note(self.others)
        if noted:
            self.cluster.end(self.others)
        return {"changed": bool(noted), "verdict": found}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS)
    try:
        replacement = Replacement(module.params)
        module.exit_json(**getattr(replacement, module.params["step"])())
    except MemberRefusedError as refused:
        module.fail_json(msg=str(refused))
    except OSError as error:
        module.fail_json(msg=f"{error.filename}: {error.strerror}")


if __name__ == "__main__":
    main()
