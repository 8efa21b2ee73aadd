"""Runbooks in the shell of a person who runs playbooks, or who is on a member's machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from etcd_machines import PLAYBOOKS, EtcdMachines

sys.path.insert(0, str(Path(__file__).parents[1] / "runbooks"))
from runbook import Runbook


def on_the_controller(etcd: EtcdMachines, name: str, **values: str) -> Runbook:
    """A runbook whose commands run where playbooks do."""
    first = etcd.names[0]
    programs = f"{Path(sys.executable).parent}:{etcd.machines[first].path('/usr/local/bin')}:{os.environ['PATH']}"
    environment = {**etcd.variables[first]["gpufleet_environment"], "HOME": os.environ["HOME"], "PATH": programs, "ANSIBLE_NOCOLOR": "1"}
    return Runbook(name, values, environment, PLAYBOOKS)
