"""Operations of Pulumi's engine on one stack: open it, repair what a killed command left, run a command and follow its events."""

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
from rehearsal.azure.stack_records import StackRecord
from rehearsal.local_cluster.hub.hub_network import HubNamespace
from rehearsal.local_up.up import PROJECT
from rehearsal.pulumi_cli import state_repair
from rehearsal.pulumi_cli.cli_process import PulumiCli, follow_file
from rehearsal.pulumi_cli.engine_choice import PulumiPrograms
from rehearsal.pulumi_cli.events import CANCELLED, OperationTimeline
from rehearsal.pulumi_cli.workspace import EngineFolder

SECRETS_PROVIDER = "passphrase"


class EngineError(GpufleetError):
    """A preparation that failed: description and reason."""

    exit_status = 1

    def __init__(self, action: str, reason: str) -> None:
        super().__init__(f"{action}: {reason}")


@dataclass(frozen=True)
class ProgressReporter:
    """Functions that report the progress of a command: sentences, and each change of an operation's timeline."""

    report: Callable[[str], None]
    progressed: Callable[[OperationTimeline], None]


@dataclass
class RegionEngine:
    """Pulumi's engine for one region, while the region's folder is locked."""

    plan: RegionPlan
    folder: EngineFolder
    cli: PulumiCli
    workspace: LocalWorkspace
    reporter: ProgressReporter

    @property
    def interrupted(self) -> bool:
        """Return whether the user interrupted the command."""
        return self.cli.interrupts > 0

    def open_stack(self, stack: str) -> None:
        """Create a stack where there is none; remove dead locks, and resolve the operations that the last command left under way."""
        for lock in state_repair.lock_files(self.folder.backend, PROJECT, stack):
            lock.unlink(missing_ok=True)
            self.reporter.report(f"{stack}: removed the lock of a dead command")
            if state_repair.restore_backup(self.folder.backend, PROJECT, stack):
                self.reporter.report(f"{stack}: its last checkpoint is incomplete; the backup before it is used")
        try:
            Stack.create_or_select(stack, self.workspace)
        except CommandError as error:
            raise EngineError(f"pulumi cannot open stack {stack}", " ".join(str(error).rpartition("stderr:")[2].split())) from error
        if under_way := state_repair.pending_operations(self.deployment(stack)):
            self.reporter.report(state_repair.pending_text(stack, under_way))
            self._resolve_pending(stack, under_way)

    def deployment(self, stack: str) -> Mapping[str, Any]:
        """Return a stack's state as `pulumi stack export` prints it, with encrypted secrets."""
        return json.loads(self._run_cli("stack", "export", "--stack", stack)).get("deployment") or {}

    def records(self, stack: str) -> list[StackRecord]:
        """Return the resources of a stack."""
        return [stack_record(item) for item in self.deployment(stack).get("resources") or ()]

    def unprotect(self, stack: str, urns: Sequence[str]) -> None:
        """Remove the protection of resources."""
        if urns:
            self._run_cli("state", "unprotect", "--yes", "--stack", stack, *urns)

    def purge_vaults(self) -> int:
        """Purge the deleted vaults of the region; return their number."""
        spec = self.plan.spec
        names = [vault.name for cluster in self.plan.clusters for vault in cluster.vaults]
        words = [sys.executable, "-m", "rehearsal.pulumi_cli.vault_purge", spec.subscription, spec.location, *names]
        result = self.cli.run_in_hub(words, {})
        if result.code:
            raise EngineError("vaults were not purged", " ".join(result.stderr.split()))
        return len(result.stdout.splitlines())

    def operate(self, verb: str, stack: str, flags: Iterable[str] = (), more: Mapping[str, str] | None = None) -> OperationTimeline:
        """Run up, preview, refresh or destroy on one stack and follow its events; more contains environment variables."""
        timeline = OperationTimeline(stack, verb)
        log = self.folder.path / f"events-{stack}.jsonl"
        args = [verb, "--stack", stack, "--event-log", str(log.resolve()), "--suppress-outputs", "--color", "never", *flags]

        def add(line: str) -> None:
            sentence = timeline.add_event(line)
            if sentence and not (self.interrupted and CANCELLED.search(sentence)):
                self.reporter.report(f"{stack}: {sentence}")
            self.reporter.progressed(timeline)

        self.reporter.progressed(timeline)
        with follow_file(log, add):
            result = self.cli.execute(args, self.workspace.work_dir, more or {})
        timeline.finish(result.code, result.stderr or result.stdout)
        return timeline

    def _resolve_pending(self, stack: str, under_way: Sequence[state_repair.PendingOperation]) -> None:
        """Read the resources of operations that a dead command left under way; drop those that do not exist."""
        exported = json.loads(self._run_cli("stack", "export", "--stack", stack))
        state = state_repair.with_created_resources(exported["deployment"], under_way)
        path = self.folder.path.resolve() / f"settled-{stack}.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps({**exported, "deployment": state}))
        self._run_cli("stack", "import", "--stack", stack, "--file", str(path))
        path.unlink()
        existing = {resource["urn"] for resource in state["resources"]}
        targets = [word for one in under_way if one.urn in existing for word in ("--target", one.urn)]
        if targets:
            self._run_cli("refresh", "--yes", "--skip-preview", "--suppress-outputs", "--stack", stack, *targets)

    def _run_cli(self, *words: str) -> str:
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
    hub: HubNamespace,
    lock: int,
    reporter: ProgressReporter,
) -> Iterator[RegionEngine]:
    """Yield Pulumi's engine for a region in its hub namespace; region is the name or path that the plan was loaded from."""
    folder.prepare(plan, region)
    environment = folder.environment(programs, hub.environment)
    cli = PulumiCli(programs, hub.command, environment, lock)
    workspace = LocalWorkspace(
        work_dir=str(folder.project.resolve()),
        pulumi_home=environment["PULUMI_HOME"],
        secrets_provider=SECRETS_PROVIDER,
        pulumi_command=cli,
    )
    with cli.forward_interrupts():
        yield RegionEngine(plan, folder, cli, workspace, reporter)


def stack_record(item: Mapping[str, Any]) -> StackRecord:
    """Return a resource of a state as the record that the commands of the local up use."""
    return StackRecord(
        urn=item["urn"],
        type=item["type"],
        parent=item.get("parent"),
        id=item.get("id", ""),
        dependencies=tuple(item.get("dependencies", ())),
        protect=item.get("protect", False),
        retain=item.get("retainOnDelete", False),
        kept={"inputs": item.get("inputs") or {}},
    )
