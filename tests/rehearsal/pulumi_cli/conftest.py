"""Fixtures for tests of commands on Pulumi's engine; they need the CLI, which is in no registry."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_commands import Engine

from rehearsal.local_cluster.hub.hub_network import unavailable_reason
from rehearsal.pulumi_cli.engine_choice import PulumiPrograms, choose_engine


@pytest.fixture(scope="session")
def pulumi_cli() -> PulumiPrograms:
    """The CLI; a skip with the reason where Pulumi's own engine is not to be had."""
    chosen = choose_engine(unavailable_reason)
    if chosen.programs is None:
        pytest.skip(chosen.reason)
    return chosen.programs


@pytest.fixture(scope="session")
def up_once(pulumi_cli: PulumiPrograms, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Region dev, deployed; tests do not change it."""
    engine = Engine(tmp_path_factory.mktemp("engine") / "dev")
    result = engine.run("up")
    assert result.returncode == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    assert result.stderr.startswith(f"engine: Pulumi {pulumi_cli.version} ({pulumi_cli.cli}), because ")
    assert any(line.startswith("dev-base: + 44 created, 0 unchanged") for line in lines)
    assert any(line.startswith("dev: + 224 created, 0 unchanged") for line in lines)
    return engine


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[Engine], Engine]:
    """Make a copy of what an engine works on."""

    def copy(engine: Engine) -> Engine:
        return Engine(Path(shutil.copytree(engine.folder, tmp_path / "engine", symlinks=True)))

    return copy


@pytest.fixture
def brought_up(up_once: Engine, copied: Callable[[Engine], Engine]) -> Engine:
    """A copy of dev, brought up."""
    return copied(up_once)
