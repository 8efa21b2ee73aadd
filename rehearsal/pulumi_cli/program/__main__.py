"""Pulumi program of one stack for a rehearsal with Pulumi's engine: the real program, which here may assume missing captures."""

from __future__ import annotations

import pulumi

from rehearsal.local_up.assumed_captures import with_assumed_captures
from stacks.__main__ import run
from stacks.program import collect_rarely

if __name__ == "__main__":
    collect_rarely()
    run(pulumi.get_stack(), pulumi.Config().get("region-file"), adapt=with_assumed_captures)
