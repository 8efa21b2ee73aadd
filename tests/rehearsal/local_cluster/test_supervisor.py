"""Services become ready, are restarted and end as under systemd; real processes throughout."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from supervised_services import SupervisedServices, count_marked, notifying, ready
from waiting import DEADLINE_SECONDS, until

from rehearsal.local_cluster.systemd.service_definition import ServiceNotReadyError

FOREVER = ("sleep", "1000")


def test_a_service_is_ready_as_soon_as_it_runs_and_stopped_once_it_is_stopped(supervised: SupervisedServices) -> None:
    service = supervised.add(*FOREVER)
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


def test_a_notifying_service_is_ready_when_it_says_so_and_not_before(supervised: SupervisedServices) -> None:
    gate = supervised.file("gate")
    script = notifying(b"STATUS=loading\nEXTEND_TIMEOUT_USEC=1000000", then=f"until [ -e {gate} ]; do sleep 0.01; done; ")
    service = supervised.shell(script + notifying(b"READY=1"), notify=True)
    service.start()
    until(lambda: service.pid is not None, "its process runs")
    with pytest.raises(ServiceNotReadyError):
        service.wait_ready(0.2)
    assert service.state == "starting"
    gate.touch()
    service.wait_ready(DEADLINE_SECONDS)
    assert (service.state, service.sub_state) == ("ready", "running")


def test_a_notifying_service_that_ends_without_a_word_has_broken_the_protocol(supervised: SupervisedServices) -> None:
    service = supervised.add("true", notify=True)
    service.start()
    with pytest.raises(ServiceNotReadyError, match="last ended with status 0"):
        service.wait_ready(DEADLINE_SECONDS)
    assert (service.state, service.result) == ("failed", "protocol")


def test_commands_before_and_after_run_in_order_at_every_start(supervised: SupervisedServices) -> None:
    order = supervised.file("order")

    def note(word: str) -> tuple[str, ...]:
        return ("sh", "-c", f"echo {word} >> {order}")

    script = f"echo runs >> {order}; exec sleep 1000"
    service = supervised.shell(script, before=(note("first"), note("second")), after=(note("after"),), restart_seconds=0.0)
    ready(service)
    until(lambda: "runs" in order.read_text(), "the program runs")
    lines = order.read_text().split()
    assert lines[:2] == ["first", "second"]
    assert sorted(lines[2:]) == ["after", "runs"]
    service.kill()
    until(lambda: order.read_text().count("after") == 2 and order.read_text().count("runs") == 2, "a second start")
    assert order.read_text().split()[4:6] == ["first", "second"]


def test_a_command_before_that_waits_for_ever_keeps_the_service_starting_until_it_is_stopped(supervised: SupervisedServices) -> None:
    service = supervised.add("true", before=(FOREVER,), restart_seconds=0.0)
    service.start()
    until(lambda: service.sub_state == "start-pre", "the command runs")
    with pytest.raises(ServiceNotReadyError, match=r"is starting \(start-pre\)"):
        service.wait_ready(0.1)
    service.stop()
    assert service.state == "stopped"
    assert count_marked(supervised.run) == 0


def test_a_killed_service_is_restarted_and_so_is_one_whose_command_before_fails(supervised: SupervisedServices) -> None:
    marks = supervised.file("marks")
    fails_twice = ("sh", "-c", f"echo x >> {marks}; [ $(wc -l < {marks}) -gt 2 ]")
    service = supervised.add(*FOREVER, before=(fails_twice,), restart_seconds=0.01)
    ready(service)
    assert service.restarts == 2
    before = service.pid
    service.kill()
    until(lambda: service.pid not in (None, before) and service.state == "ready", "another process")
    assert service.restarts == 3
    assert (service.result, service.exit_status) == ("signal", -signal.SIGKILL)
    assert "machine/thing.service: ended with signal SIGKILL, starts again in 0.01 s" in supervised.said
    service.restart()
    service.wait_ready(DEADLINE_SECONDS)
    assert service.restarts == 0


def test_a_service_that_waits_for_its_restart_can_be_stopped(supervised: SupervisedServices) -> None:
    service = supervised.add("false", restart_seconds=1000.0)
    service.start()
    until(lambda: service.sub_state == "auto-restart", "it waits")
    assert service.state == "starting"
    service.stop()
    assert service.state == "stopped"


def test_a_service_without_restart_fails_and_says_why(supervised: SupervisedServices) -> None:
    service = supervised.shell("for n in 1 2 3 4 5 6 7; do echo line $n; done; echo cannot open the database >&2; exit 3")
    service.start()
    until(lambda: service.state == "failed", "it has failed")
    with pytest.raises(ServiceNotReadyError) as caught:
        service.wait_ready(DEADLINE_SECONDS)
    assert caught.value.status == 3
    assert caught.value.lines == ["line 4", "line 5", "line 6", "line 7", "cannot open the database"]
    assert str(caught.value).startswith("machine/thing.service is failed (failed), last ended with status 3; the end of its log ")
    assert service.result == "exit-code"


def test_a_program_that_is_not_there_is_told_as_a_sentence_in_its_log(supervised: SupervisedServices) -> None:
    service = supervised.add("/no/such/program")
    service.start()
    with pytest.raises(ServiceNotReadyError, match=r"/no/such/program cannot be executed in .*: No such file or directory"):
        service.wait_ready(DEADLINE_SECONDS)
    assert (service.state, service.exit_status) == ("failed", 203)


def test_a_oneshot_is_ready_once_it_has_ended_well(supervised: SupervisedServices) -> None:
    done = supervised.file("done")
    service = ready(supervised.shell(f"touch {done}", oneshot=True, restart_seconds=0.0))
    assert done.exists()
    assert (service.sub_state, service.pid, service.restarts) == ("exited", None, 0)
    service.stop()
    assert service.state == "stopped"
    failing = supervised.add("false", name="machine/failing.service", oneshot=True)
    failing.start()
    with pytest.raises(ServiceNotReadyError):
        failing.wait_ready(DEADLINE_SECONDS)
    assert failing.state == "failed"


def test_a_oneshot_runs_again_at_a_later_start_where_nothing_remains_of_it_and_else_does_not(supervised: SupervisedServices) -> None:
    for again, times in ((True, 2), (False, 1)):
        path = supervised.file(str(again))
        service = ready(supervised.shell(f"echo once >> {path}", name=f"machine/{again}.service", oneshot=True, again=again))
        service.start()
        service.wait_ready(DEADLINE_SECONDS)
        assert path.read_text() == times * "once\n"


def test_environment_files_are_read_at_each_start_over_the_environment(supervised: SupervisedServices) -> None:
    file, seen = supervised.file("join.env"), supervised.file("seen")
    write = ("sh", "-c", f"printf '# once\\nSTATE=existing\\nRING=\"a=1,b=2\"\\n' > {file}")
    service = supervised.shell(
        f"echo $STATE $RING $TMPDIR > {seen}.part; mv {seen}.part {seen}; exec sleep 1000", environment_files=(file,)
    )
    ready(service)
    until(seen.exists, "it has written")
    assert seen.read_text().split() == [str(supervised.run.path / "machine/tmp")]
    service.stop()
    seen.unlink()
    other = supervised.shell(
        f"echo $STATE $RING > {seen}.part; mv {seen}.part {seen}; exec sleep 1000",
        name="machine/other.service",
        environment_files=(file,),
        before=(write,),
    )
    ready(other)
    until(seen.exists, "it has written")
    assert seen.read_text().split() == ["existing", "a=1,b=2"]
