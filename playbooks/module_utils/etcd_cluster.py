"""Queries to an etcd cluster by etcdctl from one member's machine, and changes of its members."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

LOCK = "/gpufleet/etcd-replacement"
"""Key in the cluster itself that records the replacement in progress: it survives the loss of any machine."""

ASK = "Ask each member: etcdctl endpoint status"

UNSETTLED = "etcdserver: unhealthy cluster"
"""Answer of etcd to a change of members while one of them has been connected for less than 5 s:
https://github.com/etcd-io/etcd/blob/v3.6.14/server/etcdserver/server.go (HealthInterval)
"""

UNSETTLED_SECONDS = 20
"""Longest duration of that state: an occasional lost connection, and the 5 s after it."""


class MemberRefusedError(Exception):
    """A refused step: the fault, and what an operator can do."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}. {remedy}")


class EtcdCluster:
    """A planned etcd cluster: members is a list of {name, client_url, peer_url}; seconds is the time limit of an answer."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.members = {member["name"]: member for member in arguments["members"]}
        self.names = {member["client_url"]: name for name, member in self.members.items()}
        self.etcdctl = arguments["etcdctl"]
        self.tls = [
            "--cacert={}".format(arguments["authority"]),
            "--cert={}".format(arguments["certificate"]),
            "--key={}".format(arguments["key"]),
        ]
        self.seconds = arguments["answer_seconds"]

    def run(self, words: Iterable[str], endpoints: Iterable[str], given: str | None = None, form: str = "json") -> tuple[int, str, str]:
        """Return status, output and errors of etcdctl."""
        command = [self.etcdctl, *list(words), "--endpoints={}".format(",".join(endpoints)), f"--write-out={form}", *self.tls]
        command += [f"--dial-timeout={self.seconds}s", f"--command-timeout={self.seconds}s"]
        # Environment variables would override these flags.
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ETCDCTL_")}
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, env=clean)
        return done.returncode, done.stdout, done.stderr

    def ask(self, words: tuple[str, ...], endpoints: Iterable[str], given: str | None = None) -> Any:
        """Return the JSON answer of etcdctl; MemberRefusedError with etcd's error."""
        status, said, error = self.run(words, endpoints, given)
        if status:
            raise MemberRefusedError(refusal(words, error), ASK)
        return json.loads(said)

    def reconfigure(self, words: tuple[str, ...], endpoints: Iterable[str]) -> None:
        """Change the members of the cluster; MemberRefusedError with etcd's error.

        etcd refuses a change within 5 s after each new connection of two members. The change is then tried again.
        """
        endpoints = list(endpoints)

        def step() -> str:
            status, _said, error = self.run(words, endpoints)
            if status and UNSETTLED not in error:
                raise MemberRefusedError(refusal(words, error), ASK)
            return refusal(words, error) if status else ""

        wait(UNSETTLED_SECONDS, step, ASK)

    def url(self, name: str) -> str:
        """Return a member's client URL."""
        return self.members[name]["client_url"]

    def urls(self, without: str = "") -> list[str]:
        """Return the client URLs of every planned member except one."""
        return [member["client_url"] for name, member in self.members.items() if name != without]

    def listed(self, healthy: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the cluster's list of members by peer URL: {id, name, learner, started}."""
        found = self.ask(("member", "list"), [self.url(name) for name in healthy])["members"]
        return {
            member["peerURLs"][0]: {
                "id": "{:x}".format(member["ID"]),
                "name": member.get("name", ""),
                "learner": bool(member.get("isLearner")),
                "started": bool(member.get("clientURLs")),
            }
            for member in found
        }

    def health(self, names: Iterable[str]) -> dict[str, str]:
        """Return each member's fault in a read that needs the quorum: "" if it is healthy."""
        _status, said, error = self.run(("endpoint", "health"), [self.url(name) for name in names])
        try:
            found = {self.names[item["endpoint"]]: item for item in json.loads(said)}
        except ValueError:
            return {name: last_line(error) for name in names}
        answers = {name: found.get(name, {"health": False, "error": "no answer"}) for name in names}
        return {name: "" if item["health"] else item.get("error") or "unhealthy" for name, item in answers.items()}

    def statuses(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the status of every member that answers: {leader, learner, revision, applied, version, size, in_use, errors}."""
        _status, said, _error = self.run(("endpoint", "status"), [self.url(name) for name in names])
        try:
            found = json.loads(said) or []
        except ValueError:
            return {}
        return {self.names[item["Endpoint"]]: status_of(item["Status"]) for item in found}

    def hashes(self, names: Iterable[str], revision: int) -> dict[str, int]:
        """Return the hash of every member's keys up to a revision that all have reached; MemberRefusedError where one does not answer."""
        found = self.ask(("endpoint", "hashkv", f"--rev={revision}"), [self.url(name) for name in names])
        return {self.names[item["Endpoint"]]: item["HashKV"]["hash"] for item in found}

    def count(self, names: Iterable[str]) -> int:
        """Return the number of keys in the cluster."""
        words = ("get", "", "--prefix", "--count-only")
        status, said, error = self.run(words, [self.url(name) for name in names], form="fields")
        found = re.findall(r'^"Count" : (\d+)$', said, re.MULTILINE)
        if status or not found:
            raise MemberRefusedError(f"etcdctl get --count-only: {last_line(error)}", ASK)
        return int(found[0])

    def note(self, names: Iterable[str]) -> dict[str, Any] | None:
        """Return the recorded replacement in progress, or None."""
        found = self.ask(("get", LOCK), [self.url(name) for name in names])
        return json.loads(decoded(found["kvs"][0]["value"])) if found.get("kvs") else None

    def begin(self, names: Iterable[str], note: Mapping[str, Any]) -> None:
        """Record that a replacement begins, unless one is in progress."""
        wanted = f'create("{LOCK}") = "0"\n\nput {LOCK} {quoted(json.dumps(note))}\n\n\n'
        if not self.ask(("txn",), [self.url(name) for name in names], wanted).get("succeeded"):
            raise MemberRefusedError("another replacement began at the same moment", "Run the playbook again: it reports which")

    def write(self, names: Iterable[str], note: Mapping[str, Any]) -> None:
        """Record the progress of a replacement."""
        self.ask(("put", LOCK, json.dumps(note)), [self.url(name) for name in names])

    def end(self, names: Iterable[str]) -> None:
        """Record that no replacement is in progress."""
        self.ask(("del", LOCK), [self.url(name) for name in names])

    def verdict(self) -> dict[str, Any]:
        """Return the state of the cluster; fault is "" if all members are healthy and equal, else the answer of a failing member."""
        try:
            return self._verdict(list(self.members))
        except MemberRefusedError as refused:
            return {"fault": str(refused)}

    def _verdict(self, names: list[str]) -> dict[str, Any]:
        ill = {name: reason for name, reason in self.health(names).items() if reason}
        if ill:
            return {"fault": "; ".join("{} answers: {}".format(*item) for item in sorted(ill.items()))}
        listed = self.listed(names)
        voters = {url for url, item in listed.items() if not item["learner"]}
        if voters != {member["peer_url"] for member in self.members.values()}:
            return {"fault": "the cluster's voters are {}".format(", ".join(sorted(voters)))}
        statuses = self.statuses(names)
        if len(statuses) < len(names):
            return {"fault": "not every member reports its status"}
        revision = min(status["revision"] for status in statuses.values())
        hashes = self.hashes(names, revision)
        if len(set(hashes.values())) != 1:
            return {"fault": f"members differ at revision {revision}: {hashes}"}
        return {"fault": "", "members": names, "revision": revision, "hash": f"{next(iter(hashes.values())):08x}"}


def status_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a member's status that decisions need."""
    header = found["header"]
    return {
        "leader": found.get("leader") == header.get("member_id"),
        "learner": bool(found.get("isLearner")),
        "revision": header.get("revision", 0),
        "applied": found.get("raftAppliedIndex", 0),
        "version": found.get("version", ""),
        "size": found.get("dbSize", 0),
        "in_use": found.get("dbSizeInUse", 0),
        "errors": found.get("errors") or [],
    }


def decoded(value: str) -> str:
    """Return a value that etcdctl wrote in JSON."""
    return base64.b64decode(value).decode()


def quoted(text: str) -> str:
    """Return a word in the syntax of etcdctl's transactions."""
    return json.dumps(text)


def last_line(error: str) -> str:
    """Return the last line of a program's errors, without etcdctl's log lines if there is another."""
    lines = [line for line in error.splitlines() if line.strip()]
    spoken = [line for line in lines if not line.startswith("{")]
    return (spoken or lines or ["no answer"])[-1][:400]


def refusal(words: tuple[str, ...], error: str) -> str:
    """Return the etcdctl command and its last error line."""
    return "etcdctl {}: {}".format(" ".join(words[:2]), last_line(error))


def quorum(members: int) -> int:
    """Return the number of members that must agree."""
    return members // 2 + 1


def wait(seconds: float, step: Callable[[], str], remedy: str) -> None:
    """Repeat step with growing pauses until it returns no reason; MemberRefusedError with the last reason after `seconds`."""
    until, pause = time.monotonic() + seconds, 0.2
    while True:
        reason = step()
        if not reason:
            return
        if time.monotonic() + pause > until:
            raise MemberRefusedError(f"{reason}, {seconds} s long", remedy)
        time.sleep(pause)
        pause = min(pause * 1.5, 5)
