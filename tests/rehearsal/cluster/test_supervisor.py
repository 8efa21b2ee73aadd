"""Services become ready, are restarted and end as under systemd; real processes throughout."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import ignores
from waiting import DEADLINE_SECONDS, until

from rehearsal.cluster import guardian, service_log, supervisor
from rehearsal.cluster.run_directory import RunDirectory
from rehearsal.cluster.supervisor import NotReady, Program, Service, Supervisor

SAY = "import os, socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto({!r}, os.environ['NOTIFY_SOCKET'])"
FOREVER = ("sleep", "1000")


class Kept:
    """A supervisor in a run, with programs made short."""

    def __init__(self, run: RunDirectory) -> None:
        self.run, self.said = run, list[str]()
        self.supervisor = Supervisor(run, self.said.append)

    def add(self, *argv: str, name: str = "machine/thing.service", **more: Any) -> Service:
        folder = self.run.path / "machine"
        return self.supervisor.add(Program(name, argv, {"PATH": os.environ["PATH"]}, folder / f"{Path(name).name}.log", folder, **more))

    def shell(self, script: str, **more: Any) -> Service:
        return self.add("sh", "-c", script, **more)

    def file(self, name: str) -> Path:
        return self.run.path / name


@pytest.fixture
def kept() -> Iterator[Kept]:
    with RunDirectory() as run:
        yield Kept(run)


def notifying(*messages: bytes, then: str = "exec sleep 1000") -> str:
    """A shell script that says things by sd_notify."""
    python = "\n".join(SAY.format(message) for message in messages)
    return f'"{sys.executable}" -c "{python}" && {then}'


def ready(service: Service) -> Service:
    service.start()
    service.wait_ready(DEADLINE_SECONDS)
    return service


def test_a_service_is_ready_as_soon_as_it_runs_and_stopped_once_it_is_stopped(kept: Kept) -> None:
    service = kept.add(*FOREVER)
    assert (service.state, service.pid) == ("stopped", None)
    ready(service)
    assert service.state == "ready"
    pid = service.pid
    assert pid is not None
    until(lambda: Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x001000\0", "it is the program")
    service.start()
    assert service.pid == pid
    service.stop()
    assert (service.state, service.pid, service.result, service.exit_status) == ("stopped", None, "success", -signal.SIGTERM)
    assert not Path(f"/proc/{pid}").exists()
    ready(service)
    assert service.pid not in (None, pid)


def test_a_notifying_service_is_ready_when_it_says_so_and_not_before(kept: Kept) -> None:
    gate = kept.file("gate")
    script = notifying(b"STATUS=loading\nEXTEND_TIMEOUT_USEC=1000000", then=f"until [ -e {gate} ]; do sleep 0.01; done; ")
    service = kept.shell(script + notifying(b"READY=1"), notify=True)
    service.start()
    until(lambda: service.pid is not None, "its process runs")
    with pytest.raises(NotReady):
        service.wait_ready(0.2)
    assert service.state == "starting"
    gate.touch()
    service.wait_ready(DEADLINE_SECONDS)
    assert (service.state, service.sub_state) == ("ready", "running")


def test_a_notifying_service_that_ends_without_a_word_has_broken_the_protocol(kept: Kept) -> None:
    service = kept.add("true", notify=True)
    service.start()
    with pytest.raises(NotReady, match="last ended with status 0"):
        service.wait_ready(DEADLINE_SECONDS)
    assert (service.state, service.result) == ("failed", "protocol")


def test_commands_before_and_after_run_in_order_at_every_start(kept: Kept) -> None:
    order = kept.file("order")

    def note(word: str) -> tuple[str, ...]:
        return ("sh", "-c", f"echo {word} >> {order}")

    script = f"echo runs >> {order}; exec sleep 1000"
    service = kept.shell(script, before=(note("first"), note("second")), after=(note("after"),), restart_seconds=0.0)
    ready(service)
    until(lambda: "runs" in order.read_text(), "the program runs")
    lines = order.read_text().split()
    assert lines[:2] == ["first", "second"]
    assert sorted(lines[2:]) == ["after", "runs"]
    service.kill()
    until(lambda: order.read_text().count("after") == 2 and order.read_text().count("runs") == 2, "a second start")
    assert order.read_text().split()[4:6] == ["first", "second"]


def test_a_command_before_that_waits_for_ever_keeps_the_service_starting_until_it_is_stopped(kept: Kept) -> None:
    service = kept.add("true", before=(FOREVER,), restart_seconds=0.0)
    service.start()
    until(lambda: service.sub_state == "start-pre", "the command runs")
    with pytest.raises(NotReady, match=r"is starting \(start-pre\)"):
        service.wait_ready(0.1)
    service.stop()
    assert service.state == "stopped"
    assert _carriers(kept.run) == 0


def _carriers(run: RunDirectory) -> int:
    found, _ = guardian.carriers(run.marker)
    for descriptor in found:
        os.close(descriptor)
    return len(found)


def test_a_killed_service_is_restarted_and_so_is_one_whose_command_before_fails(kept: Kept) -> None:
    marks = kept.file("marks")
    fails_twice = ("sh", "-c", f"echo x >> {marks}; [ $(wc -l < {marks}) -gt 2 ]")
    service = kept.add(*FOREVER, before=(fails_twice,), restart_seconds=0.01)
    ready(service)
    assert service.restarts == 2
    before = service.pid
    service.kill()
    until(lambda: service.pid not in (None, before) and service.state == "ready", "another process")
    assert service.restarts == 3
    assert (service.result, service.exit_status) == ("signal", -signal.SIGKILL)
    assert "machine/thing.service: ended with signal SIGKILL, starts again in 0.01 s" in kept.said
    service.restart()
    service.wait_ready(DEADLINE_SECONDS)
    assert service.restarts == 0


def test_a_service_that_waits_for_its_restart_can_be_stopped(kept: Kept) -> None:
    service = kept.add("false", restart_seconds=1000.0)
    service.start()
    until(lambda: service.sub_state == "auto-restart", "it waits")
    assert service.state == "starting"
    service.stop()
    assert service.state == "stopped"


def test_a_service_without_restart_fails_and_says_why(kept: Kept) -> None:
    service = kept.shell("for n in 1 2 3 4 5 6 7; do echo line $n; done; echo cannot open the database >&2; exit 3")
    service.start()
    until(lambda: service.state == "failed", "it has failed")
    with pytest.raises(NotReady) as caught:
        service.wait_ready(DEADLINE_SECONDS)
    assert caught.value.status == 3
    assert caught.value.lines == ["line 4", "line 5", "line 6", "line 7", "cannot open the database"]
    assert str(caught.value).startswith("machine/thing.service is failed (failed), last ended with status 3; the end of its log ")
    assert service.result == "exit-code"


def test_a_program_that_is_not_there_is_told_as_a_sentence_in_its_log(kept: Kept) -> None:
    service = kept.add("/no/such/program")
    service.start()
    with pytest.raises(NotReady, match=r"/no/such/program cannot be executed in .*: No such file or directory"):
        service.wait_ready(DEADLINE_SECONDS)
    assert (service.state, service.exit_status) == ("failed", 203)


def test_a_oneshot_is_ready_once_it_has_ended_well(kept: Kept) -> None:
    done = kept.file("done")
    service = ready(kept.shell(f"touch {done}", oneshot=True, restart_seconds=0.0))
    assert done.exists()
    assert (service.sub_state, service.pid, service.restarts) == ("exited", None, 0)
    service.stop()
    assert service.state == "stopped"
    failing = kept.add("false", name="machine/failing.service", oneshot=True)
    failing.start()
    with pytest.raises(NotReady):
        failing.wait_ready(DEADLINE_SECONDS)
    assert failing.state == "failed"


def test_a_oneshot_runs_again_at_a_later_start_where_nothing_remains_of_it_and_else_does_not(kept: Kept) -> None:
    for again, times in ((True, 2), (False, 1)):
        path = kept.file(str(again))
        service = ready(kept.shell(f"echo once >> {path}", name=f"machine/{again}.service", oneshot=True, again=again))
        service.start()
        service.wait_ready(DEADLINE_SECONDS)
        assert path.read_text() == times * "once\n"


def test_environment_files_are_read_at_each_start_over_the_environment(kept: Kept) -> None:
    file, seen = kept.file("join.env"), kept.file("seen")
    write = ("sh", "-c", f"printf '# once\\nSTATE=existing\\nRING=\"a=1,b=2\"\\n' > {file}")
    service = kept.shell(f"echo $STATE $RING $TMPDIR > {seen}.part; mv {seen}.part {seen}; exec sleep 1000", environment_files=(file,))
    ready(service)
    until(seen.exists, "it has written")
    assert seen.read_text().split() == [str(kept.run.path / "machine/tmp")]
    service.stop()
    seen.unlink()
    other = kept.shell(
        f"echo $STATE $RING > {seen}.part; mv {seen}.part {seen}; exec sleep 1000",
        name="machine/other.service",
        environment_files=(file,),
        before=(write,),
    )
    ready(other)
    until(seen.exists, "it has written")
    assert seen.read_text().split() == ["existing", "a=1,b=2"]


def test_one_that_ignores_the_orderly_end_is_killed_after_its_time(kept: Kept) -> None:
    service = kept.shell(notifying(b"READY=1", then="trap '' TERM; while :; do sleep 1000; done"), notify=True, stop_seconds=0.2)
    # The trap follows the word, so that it is waited for as well.
    pid = ready(service).pid
    assert pid is not None
    until(lambda: ignores(pid, signal.SIGTERM), "it ignores SIGTERM")
    service.stop()
    assert (service.state, service.result, service.exit_status) == ("stopped", "timeout", -signal.SIGKILL)


def test_a_power_cut_ends_a_service_at_once_and_for_good(kept: Kept) -> None:
    service = ready(kept.shell("trap '' TERM; while :; do sleep 1000; done", restart_seconds=0.0, stop_seconds=1000.0))
    service.stop(signal.SIGKILL)
    assert (service.state, service.exit_status) == ("stopped", -signal.SIGKILL)
    assert _carriers(kept.run) == 0


def test_what_a_service_leaves_of_its_group_ends_with_it(kept: Kept) -> None:
    service = kept.shell("sleep 1000 & exit 0")
    service.start()
    until(lambda: service.state == "stopped", "it has ended")
    assert _carriers(kept.run) == 0


def test_usage_sums_a_process_and_its_children(kept: Kept) -> None:
    hungry = "x = bytearray(50_000_000); sum(range(2_000_000)); print('fed', flush=True); import time; time.sleep(1000)"
    service = ready(kept.shell(f'"{sys.executable}" -c "{hungry}"; true'))
    until(lambda: "fed" in service.program.log.read_text(), "the child has its memory")
    usage = service.usage()
    assert usage.memory_bytes > 50_000_000
    assert usage.peak_bytes >= usage.memory_bytes
    assert usage.cpu_seconds > 0.0
    service.stop()
    assert service.usage() == supervisor.Usage()


def test_a_log_is_bounded_while_its_service_runs(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_log, "MOST_BYTES", 10_000)
    monkeypatch.setattr(supervisor, "LOG_SECONDS", 0.05)
    with Supervisor(kept.run) as bounded:
        folder = kept.run.path / "talker"
        environment = {"PATH": os.environ["PATH"]}
        script = "n=0; while :; do n=$((n+1)); echo $n says something long enough; [ $n -gt 3000 ] && sleep 0.01; done"
        service = ready(bounded.add(Program("talker", ("sh", "-c", script), environment, folder / "log", folder)))
        until(lambda: service_log.earlier_part(folder / "log").exists(), "an earlier part")
        until(lambda: (folder / "log").stat().st_size < 10_000, "a short log")
        assert service.state == "ready"


def test_everything_ends_when_the_run_is_closed_however_long_its_own_end_would_take() -> None:
    with RunDirectory() as run:
        kept = Kept(run)
        stubborn = "trap '' TERM; while :; do sleep 1000; done"
        services = [ready(kept.shell(stubborn, name=f"machine/{index}", restart_seconds=0.0, stop_seconds=60.0)) for index in range(10)]
        began = time.monotonic()
    took = time.monotonic() - began
    assert {service.state for service in services} == {"stopped"}
    # One after another they would have had ten times the patience.
    assert took < 10 * supervisor.PATIENCE_SECONDS
    assert _carriers(run) == 0


def test_nothing_starts_after_the_end(kept: Kept) -> None:
    service = ready(kept.add(*FOREVER, restart_seconds=0.0))
    kept.supervisor.close()
    service.start()
    assert service.state == "stopped"
    with pytest.raises(ValueError, match="its run has ended"):
        kept.add("true", name="machine/late.service")


def test_two_services_of_one_name_are_refused(kept: Kept) -> None:
    kept.add("true")
    with pytest.raises(ValueError, match="there is a service of that name"):
        kept.add("true")


def test_waiting_for_services_costs_no_processor_time(kept: Kept) -> None:
    for index in range(20):
        ready(kept.add(*FOREVER, name=f"machine/{index}", restart_seconds=1.0))
    began = time.process_time()
    time.sleep(1.0)
    assert time.process_time() - began < 0.2
