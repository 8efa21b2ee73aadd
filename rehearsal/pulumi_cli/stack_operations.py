"""Decides how one stack of a region is worked on by Pulumi's own engine: taken up as it was left, and operated on under watch."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pulumi.automation import LocalWorkspace, Stack
from pulumi.automation.errors import CommandError

from components.errors import GpufleetError
from components.plan.model import RegionPlan
from rehearsal.azure.stack_records import Record
from rehearsal.local_cluster.hub.hub_network import HubNamespace
from rehearsal.local_up.up import PROJECT
from rehearsal.pulumi_cli import state_repair
from rehearsal.pulumi_cli.cli_process import PulumiCli, follow_file
from rehearsal.pulumi_cli.engine_choice import PulumiPrograms
from rehearsal.pulumi_cli.events import CANCELLED, OperationTimeline
from rehearsal.pulumi_cli.workspace import EngineFolder

SECRETS_PROVIDER = "passphrase"


class EngineError(GpufleetError):
    """What every verb needs could not be done: what, and why."""

    def __init__(self, what: str, said: str) -> None:
        super().__init__(f"{what}: {said}")


@dataclass(frozen=True)
class ProgressReporter:
    """Where the course of a command is told: sentences, and how far an operation has come."""

    say: Callable[[str], None]
    went_on: Callable[[OperationTimeline], None]


@dataclass
class RegionEngine:
    """Pulumi's own engine at work on one region, whose folder is held."""

    plan: RegionPlan
    folder: EngineFolder
    cli: PulumiCli
    workspace: LocalWorkspace
    telling: ProgressReporter

    @property
    def interrupted(self) -> bool:
        """Whether somebody has asked to stop."""
        return self.cli.interrupts > 0

    def take_up(self, stack: str) -> None:
        """Make a stack where there is none; free it of dead locks, and settle what was under way when its last command died."""
        for lock in state_repair.lock_files(self.folder.backend, PROJECT, stack):
            lock.unlink(missing_ok=True)
            self.telling.say(f"{stack}: freed of the lock of a command that has died")
            if state_repair.restore_backup(self.folder.backend, PROJECT, stack):
                self.telling.say(f"{stack}: its last checkpoint was cut off while it was written; the one before is taken")
        try:
            Stack.create_or_select(stack, self.workspace)
        except CommandError as error:
            raise EngineError(f"pulumi cannot take up stack {stack}", " ".join(str(error).rpartition("stderr:")[2].split())) from error
        if under_way := state_repair.pending_operations(self.deployment(stack)):
            self.telling.say(state_repair.pending_text(stack, under_way))
            self._settle(stack, under_way)

    def deployment(self, stack: str) -> Mapping[str, Any]:
        """A stack's state, as `pulumi stack export` gives it, secrets encrypted."""
        return json.loads(self._must("stack", "export", "--stack", stack)).get("deployment") or {}

    def records(self, stack: str) -> list[Record]:
        """What a stack has."""
        return [stack_record(item) for item in self.deployment(stack).get("resources") or ()]

    def unprotect(self, stack: str, urns: Sequence[str]) -> None:
        """Take the protection from resources."""
        if urns:
            self._must("state", "unprotect", "--yes", "--stack", stack, *urns)

    def purge_vaults(self) -> int:
        """Purge those of the region's vaults that are deleted ones; how many."""
        spec = self.plan.spec
        names = [vault.name for cluster in self.plan.clusters for vault in cluster.vaults]
        words = [sys.executable, "-m", "rehearsal.pulumi_cli.vault_purge", spec.subscription, spec.location, *names]
        result = self.cli.run_inside(words, {})
        if result.code:
            raise EngineError("vaults were not purged", " ".join(result.stderr.split()))
        return len(result.stdout.splitlines())

    def operate(self, verb: str, stack: str, flags: Iterable[str] = (), more: Mapping[str, str] | None = None) -> OperationTimeline:
        """Run up, preview, refresh or destroy of one stack and watch it; more is environment."""
        course = OperationTimeline(stack, verb)
        log = self.folder.path / f"events-{stack}.jsonl"
        args = [verb, "--stack", stack, "--event-log", str(log.resolve()), "--suppress-outputs", "--color", "never", *flags]

        def take(line: str) -> None:
            sentence = course.take(line)
            if sentence and not (self.interrupted and CANCELLED.search(sentence)):
                self.telling.say(f"{stack}: {sentence}")
            self.telling.went_on(course)

        self.telling.went_on(course)
        with follow_file(log, take):
            result = self.cli.execute(args, self.workspace.work_dir, more or {})
        course.concluded(result.code, result.stderr or result.stdout)
        return course

    def _settle(self, stack: str, under_way: Sequence[state_repair.PendingOperation]) -> None:
        """Have the providers read what a dead command was working on, and drop what is not there."""
        exported = json.loads(self._must("stack", "export", "--stack", stack))
        state = state_repair.with_created_resources(exported["deployment"], under_way)
        path = self.folder.path.resolve() / f"settled-{stack}.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps({**exported, "deployment": state}))
        self._must("stack", "import", "--stack", stack, "--file", str(path))
        path.unlink()
        there = {resource["urn"] for resource in state["resources"]}
        targets = [word for one in under_way if one.urn in there for word in ("--target", one.urn)]
        if targets:
            self._must("refresh", "--yes", "--skip-preview", "--suppress-outputs", "--stack", stack, *targets)

    def _must(self, *words: str) -> str:
        result = self.cli.execute(words, self.workspace.work_dir, {})
        if result.code:
            raise EngineError(f"pulumi {' '.join(words[:2])} failed", (result.stderr or result.stdout).strip())
        return result.stdout


@contextmanager
def region_engine(
    plan: RegionPlan,
    region: str,
    folder: EngineFolder,
    programs: PulumiPrograms,
    inside: HubNamespace,
    hold: int,
    telling: ProgressReporter,
) -> Iterator[RegionEngine]:
    """Pulumi's own engine, ready to work on a region from inside its hub; region is the name or path that the plan was loaded from."""
    folder.prepare(plan, region)
    environment = folder.environment(programs, inside.environment)
    cli = PulumiCli(programs, inside.command, environment, hold)
    workspace = LocalWorkspace(
        work_dir=str(folder.project.resolve()),
        pulumi_home=environment["PULUMI_HOME"],
        secrets_provider=SECRETS_PROVIDER,
        pulumi_command=cli,
    )
    with cli.interruptible():
        yield RegionEngine(plan, folder, cli, workspace, telling)


def stack_record(item: Mapping[str, Any]) -> Record:
    """A resource of a state, as the verbs that work in process know one."""
    return Record(
        urn=item["urn"],
        type=item["type"],
        parent=item.get("parent"),
        id=item.get("id", ""),
        dependencies=tuple(item.get("dependencies", ())),
        protect=item.get("protect", False),
        retain=item.get("retainOnDelete", False),
        kept={"inputs": item.get("inputs") or {}},
    )
