#!/usr/bin/python
"""Does one step of the replacement of an etcd member, from the machine of another, where that step is still to do."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.etcd_replacing import judge, needed
from ansible.module_utils.etcd_ring import MemberRefusedError, Ring, last_line, wait

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCUMENTATION = r"""
module: etcd_replacement
short_description: One step of the replacement of an etcd member
description:
  - Runs on the machine of a healthy member of the ring. Each step looks first and does what is still to do.
  - The ring itself keeps a note of the replacement under way, so that a second run goes on and another replacement is refused.
author: gpufleet
options:
  step: {description: Which step., type: str, required: true, choices: [begin, remove, emptied, add, promote, verify]}
  member: {description: Name of the member that is replaced., type: str, required: true}
  members: {description: Every planned member with name, client_url and peer_url., type: list, elements: dict, required: true}
  etcdctl: {description: Path of etcdctl., type: path, required: true}
  authority: {description: Certificate of the ring's authority., type: path, required: true}
  certificate: {description: Certificate of the machine's member., type: path, required: true}
  key: {description: Key of the machine's member., type: path, required: true}
  present: {description: Whether the replaced member's disk holds data; unset where nobody knows., type: bool}
  action: {description: What Azure is asked to do with the machine., type: str, choices: [none, redeploy], default: none}
  discard: {description: Whether data on the replaced member's disk may be deleted., type: bool, default: false}
  answer_seconds: {description: How long an answer may take., type: int, default: 5}
  wait_seconds: {description: How long a learner may take to catch up., type: int, default: 900}
"""

RETURN = r"""
needed: {description: Whether there is anything to replace., type: bool, returned: with begin}
emptied: {description: Whether the disk was emptied by this replacement already., type: bool, returned: with begin}
environment: {description: Lines of the join file that let the member in., type: list, elements: str, returned: with add}
removed: {description: Id of the member that was removed., type: str, returned: with remove}
verdict: {description: What the ring is at the end., type: dict, returned: with verify}
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
    """The replacement of one member of one ring."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.given, self.ring, self.target = parameters, Ring(parameters), parameters["member"]
        if self.target not in self.ring.members:
            raise MemberRefusedError(
                f"{self.target} is no planned member of the ring", "Planned are: {}".format(", ".join(self.ring.members))
            )
        self.others = [name for name in self.ring.members if name != self.target]
        self.peer_url = self.ring.members[self.target]["peer_url"]

    def entry(self) -> dict[str, Any] | None:
        """How the ring lists the target, None where it does not."""
        return self.ring.listed(self.others).get(self.peer_url)

    def begin(self) -> dict[str, Any]:
        """Refuse what the ring could not bear; write down that it begins."""
        health = self.ring.health(list(self.ring.members))
        own = health.pop(self.target)
        healthy = [name for name, reason in health.items() if not reason]
        asked = bool(healthy)
        listed = self.ring.listed(healthy) if asked else {}
        note = self.ring.note(healthy) if asked else None
        present = self.given["present"] if self.given["action"] == "none" else bool(self.given["present"])
        judge(self.ring.members, self.target, health, listed, note, present)
        if note:
            return {"changed": False, "needed": True, "emptied": note["emptied"]}
        if not needed(self.given["action"], self.given["discard"], present, own, listed.get(self.peer_url)):
            return {"changed": False, "needed": False, "emptied": False}
        empty = self.given["action"] == "none" and not present
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
        self.ring.begin(healthy, {"member": self.target, "began": now, "emptied": empty})
        return {"changed": True, "needed": True, "emptied": empty}

    def remove(self) -> dict[str, Any]:
        """Take the old member off the ring's list."""
        entry = self.entry()
        # One that is not a voter any more, or has not started yet, is the new one.
        if entry is None or entry["learner"] or (self.ring.note(self.others)["emptied"] and self.given["present"] is not False):
            return {"changed": False, "removed": ""}
        self.ring.reconfigure(("member", "remove", entry["id"]), self.ring.urls(without=self.target))
        return {"changed": True, "removed": entry["id"]}

    def emptied(self) -> dict[str, Any]:
        """Write down that the target's disk is empty, or holds what it wrote since."""
        note = self.ring.note(self.others)
        self.ring.write(self.others, {**note, "emptied": True})
        return {"changed": not note["emptied"]}

    def add(self) -> dict[str, Any]:
        """List the target as a learner; one that started and lost its disk again is listed anew: it has forgotten what it agreed to."""
        entry, changed = self.entry(), False
        # It may have started since somebody looked at its disk.
        if entry and entry["started"] and not self.given["present"] and not self.ring.statuses([self.target]):
            self.ring.reconfigure(("member", "remove", entry["id"]), self.ring.urls(without=self.target))
            entry = None
        if entry is None and self.given["present"]:
            # What it holds is from a member that the ring has removed: etcd would end at once, for ever.
            self.ring.write(self.others, {**self.ring.note(self.others), "emptied": False})
            raise MemberRefusedError(
                f"the disk of {self.target} holds data of a member that the ring has removed", "Run the playbook again: it empties it"
            )
        if entry is None:
            words = ("member", "add", self.target, "--learner", f"--peer-urls={self.peer_url}")
            self.ring.reconfigure(words, self.ring.urls(without=self.target))
            changed = True
        listed = {url: item["name"] or self.target for url, item in self.ring.listed(self.others).items()}
        cluster = ",".join(f"{name}={url}" for url, name in sorted(listed.items(), key=lambda item: item[1]))
        lines = ["ETCD_INITIAL_CLUSTER_STATE=existing", f"ETCD_INITIAL_CLUSTER={cluster}"]
        return {"changed": changed, "environment": lines}

    def promote(self) -> dict[str, Any]:
        """Let the learner vote once it has caught up; etcd itself refuses one that has not."""
        entry = self.entry()
        if entry is None:
            raise MemberRefusedError(f"{self.target} is not listed any more", "Run the playbook again: it adds the member")
        if not entry["learner"]:
            return {"changed": False}
        words = ("member", "promote", entry["id"])

        def step() -> str:
            status, _said, error = self.ring.run(words, self.ring.urls(without=self.target))
            entry = self.entry()
            return "" if status == 0 or (entry and not entry["learner"]) else f"{self.target} has not caught up ({last_line(error)})"

        wait(
            self.given["wait_seconds"], step, "Look at its journal (journalctl -u etcd) and run the playbook again: it goes on where it was"
        )
        return {"changed": True}

    def verify(self) -> dict[str, Any]:
        """The verdict: every planned member votes, is healthy and holds the same data."""
        found: dict[str, Any] = {}

        def step() -> str:
            found.clear()
            found.update(self.ring.verdict())
            return str(found["fault"])

        wait(min(self.given["wait_seconds"], 60), step, "Run the playbook again; if that stays, see docs/runbooks/etcd-member-lost.md")
        noted = self.ring.note(self.others)
        if noted:
            self.ring.end(self.others)
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
