"""Deliberate defects of the decision core: a text that occurs once in a module, and what replaces it."""

from __future__ import annotations

from tests.support.rotation_world.defects import Defect

DEFECTS = (
    Defect("one machine more than the cluster's budget", "budget", "+ count > policy.machines", "+ count > policy.machines + 1"),
    Defect("no budget of pools", "budget", "        if policy.pools:\n", "        if False:\n"),
    Defect("no budget of teams", "budget", "        if policy.teams:\n", "        if False:\n"),
    Defect("no budget of scale sets", "budget", "dict.fromkeys(need.sets, bound)", "{}"),
    Defect("one scale set more at once", "budget", "self.down + taken > policy", "self.down + taken > 1 + policy"),
    Defect("a rate that fills twice as fast", "budget", "* self.per_minute / 60.0)", "* self.per_minute / 30.0)"),
    Defect("machines of other actors do not count", "run_state", "not removed and (seen.unavailable or in_rotation)", "in_rotation"),
    Defect("removed machines count for ever", "run_state", "unavailable = not removed and (", "unavailable = ("),
    Defect("starts per minute are forgotten by a replay", "run_state", "self.starts.take(1, transition.at)", "pass"),
    Defect("interrupted gangs are forgotten", "run_state", "self.interrupted.update(transition.gangs)", "pass"),
    Defect("old readings count", "run_state", "if now - at > self.policy.timeouts.fresh:", "if False:"),
    Defect("incomplete readings count", "run_state", "        if read.incomplete:\n", "        if False:\n"),
    Defect("throttled readings count", "run_state", "        if self.is_throttled(now):\n", "        if False:\n"),
    Defect("a free place does not wake starts", "run_state", "if entered < 0:", "if False:"),
    Defect("failures are not counted", "run_state", "self.verdicts.append(good)", "self.verdicts.append(True)"),
    Defect("a time-out is forgotten", "run_state", "if transition.until is not None and not self._replaying:", "if False:"),
    Defect(
        "actions are never repeated",
        "run_state",
        "        if batch.now >= again:\n",
        "        if batch.now >= again and record.sent_at < 0 < again:\n",
    ),
    Defect("a foreign cordon is removed", "node_progress", "if seen is None or not _is_foreign(seen):", "if True:"),
    Defect("time-outs count on old readings", "node_progress", "        return not hold\n", "        return True\n"),
    Defect("jobs get no time for a checkpoint", "node_progress", "if record.until is not None and now >= record.until:", "if True:"),
    Defect("drained with pods", "node_progress", "if seen.pods == 0:", "if seen.pods <= 1:"),
    Defect("a cordon is lost after a crash", "node_progress", 'run.send_again(batch, record, ActionKind.CORDON, "starts")', "pass"),
    Defect("an eviction is lost after a crash", "node_progress", 'run.send_again(batch, record, ActionKind.EVICT, "drain")', "pass"),
    Defect(
        "a request is lost after a crash",
        "node_progress",
        "            elif batch.now >= again:\n                self._queue_replacement(record)\n",
        "            elif batch.now >= again:\n                pass\n",
    ),
    Defect(
        "an uncordon is lost after a crash", "node_progress", 'ActionKind.UNCORDON, "has ended")', 'ActionKind.UNCORDON, "") if 0 else None'
    ),
    Defect(
        "a queued node is requested in any state",
        "node_progress",
        "if self._takes_request(one := self._run.records[name], batch.now)",
        "if (one := self._run.records[name])",
    ),
    Defect("back-off without an end", "node_progress", "* 2 ** (record.attempt - 1)", "* 2 ** (record.attempt + 30)"),
    Defect(
        "one attempt more", "node_progress", "record.attempt >= self._run.policy.attempts", "record.attempt > self._run.policy.attempts"
    ),
    Defect("configuration faults are repeated", "node_progress", "if fault is Verdict.CONFIGURATION or ", "if "),
    Defect(
        "hardware faults keep their machine",
        "node_progress",
        "Replacement.REPLACE if fault is Verdict.HARDWARE else record.method",
        "record.method",
    ),
    Defect("a verdict of an earlier boot counts", "node_progress", "if verdict is Verdict.PASSED:", "if seen.exists:"),
    Defect(
        "a failed operation counts as done",
        "node_progress",
        "elif seen.current and seen.replaced_at >= record.since:",
        "elif not seen.operating:",
    ),
    Defect(
        "a gang that has grown is drained in part",
        "node_progress",
        'return f"gang {grown} has grown to more nodes" if grown else ""',
        'return ""',
    ),
    Defect("canaries are ignored", "starts", "            return self._run.policy.canaries\n", "            return 1_000\n"),
    Defect("growth is ignored", "starts", "return self._run.policy.growth.first + ", "return 1_000 + "),
    Defect("windows are ignored", "starts", "        if self._is_open:\n", "        if True:\n"),
    Defect("a stop is ignored", "starts", "if self._run.stopped:", "if False:"),
    Defect("the day's share is ignored", "starts", "if used and used + nodes > policy.starts_per_day:", "if False:"),
    Defect(
        "the starts per minute are ignored",
        "starts",
        "        if wait > 0:\n            reason =",
        "        if False:\n            reason =",
    ),
    Defect("gangs are interrupted again", "starts", "if gang in self._run.interrupted:", "if False:"),
    Defect(
        "jobs do not keep their nodes until the date",
        "starts",
        "unit.load >= SERVICES_FROM and now < self._run.policy.idle_only_until",
        "False",
    ),
    Defect("gangs with cordoned nodes start", "starts", "        if cordoned is not None:\n", "        if False:\n"),
    Defect(
        "a gang is split",
        "pending",
        "            for name in self._of_gang.get(left.pop(), ()):\n",
        "            for name in list(self._of_gang.get(left.pop(), ()))[:1]:\n",
    ),
    Defect("a unit is not computed anew", "pending", "unit = self._units.pop(gang, None)", "unit = None"),
)
"""Defects, by the module in which they are."""
