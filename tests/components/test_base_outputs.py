"""Errors of the clusters' stack if the base stack lacks an output."""

from __future__ import annotations

import pytest

from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.run import ProgramError, run_program
from stacks.load import load_plan
from stacks.program import make


def test_a_base_stack_that_was_never_made_is_told_in_one_line_with_what_to_do() -> None:
    plan = load_plan("dev")
    backend = AcceptingCloud(tenant=plan.spec.access.tenant)
    with pytest.raises(ProgramError) as failed:
        run_program(lambda: make(plan, plan.stack), "gpufleet", plan.stack, backend=backend, stack_outputs={plan.base_stack: {}})
    assert "the base stack has no output" in failed.value.reason
    assert "run pulumi up on it first" in failed.value.reason
    assert "\n" not in failed.value.reason
