"""Services end when they are told, when the power is cut and when the run ends; what they use and say stays within bounds."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from processes import ignores
from supervised_services import SupervisedServices, count_marked, notifying, ready
from waiting import until

from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd import service_log, supervisor
from rehearsal.local_cluster.systemd.supervisor import ServiceDefinition, Supervisor

FOREVER = ("sleep", "1000")


def test_one_that_ignores_the_orderly_end_is_killed_after_its_time(supervised: SupervisedServices) -> None:
    service = supervised.shell(notifying(b"READY=1", then="trap '' TERM; while :; do sleep 1000; done"), notify=True, stop_seconds=0.2)
    # The trap follows the word, so that it is waited for as well.
    pid = ready(service).pid
    assert pid is not None
    until(lambda: ignores(pid, signal.SIGTERM), "it ignores SIGTERM")
    service.stop()
    assert (service.state, service.result, service.exit_status) == ("stopped", "timeout", -signal.SIGKILL)


def test_a_power_cut_ends_a_service_at_once_and_for_good(supervised: SupervisedServices) -> None:
    service = ready(supervised.shell("trap '' TERM; while :; do sleep 1000; done", restart_seconds=0.0, stop_seconds=1000.0))
    service.stop(signal.SIGKILL)
    assert (service.state, service.exit_status) == ("stopped", -signal.SIGKILL)
    assert count_marked(supervised.run) == 0


def test_what_a_service_leaves_of_its_group_ends_with_it(supervised: SupervisedServices) -> None:
    service = supervised.shell("sleep 1000 & exit 0")
    service.start()
    until(lambda: service.state == "stopped", "it has ended")
    assert count_marked(supervised.run) == 0


def test_usage_sums_a_process_and_its_children(supervised: SupervisedServices) -> None:
    hungry = "x = bytearray(50_000_000); sum(range(2_000_000)); print('fed', flush=True); import time; time.sleep(1000)"
    service = ready(supervised.shell(f'"{sys.executable}" -c "{hungry}"; true'))
    until(lambda: "fed" in service.program.log.read_text(), "the child has its memory")
    usage = service.usage()
    assert usage.memory_bytes > 50_000_000
    assert usage.peak_bytes >= usage.memory_bytes
    assert usage.cpu_seconds > 0.0
    service.stop()
    assert service.usage() == supervisor.ProcessUsage()


def test_a_log_is_bounded_while_its_service_runs(supervised: SupervisedServices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_log, "MAX_BYTES", 10_000)
    monkeypatch.setattr(supervisor, "LOG_SECONDS", 0.05)
    with Supervisor(supervised.run) as bounded:
        folder = supervised.run.path / "talker"
        environment = {"PATH": os.environ["PATH"]}
        script = "n=0; while :; do n=$((n+1)); echo $n says something long enough; [ $n -gt 3000 ] && sleep 0.01; done"
        service = ready(bounded.add(ServiceDefinition("talker", ("sh", "-c", script), environment, folder / "log", folder)))
        until(lambda: service_log.earlier_part(folder / "log").exists(), "an earlier part")
        until(lambda: (folder / "log").stat().st_size < 10_000, "a short log")
        assert service.state == "ready"


def test_everything_ends_when_the_run_is_closed_however_long_its_own_end_would_take() -> None:
    with RunDirectory() as run:
        supervised = SupervisedServices(run)
        stubborn = "trap '' TERM; while :; do sleep 1000; done"
        services = [
            ready(supervised.shell(stubborn, name=f"machine/{index}", restart_seconds=0.0, stop_seconds=60.0)) for index in range(10)
        ]
        began = time.monotonic()
    took = time.monotonic() - began
    assert {service.state for service in services} == {"stopped"}
    # One after another they would have had ten times the patience.
    assert took < 10 * supervisor.PATIENCE_SECONDS
    assert count_marked(run) == 0


def wakes(descriptor: int) -> bool:
    """Return whether a descriptor of this process wakes a service."""
    try:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink()) == "anon_inode:[eventfd]"
    except FileNotFoundError:
        return False


def test_services_that_nobody_remembers_hold_no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    eventfd = os.eventfd

    def noted(*given: int) -> int:
        made.append(eventfd(*given))
        return made[-1]

    def are_closed() -> bool:
        gc.collect()
        return not any(wakes(one) for one in made)

    monkeypatch.setattr(os, "eventfd", noted)
    with RunDirectory() as run:
        supervised = SupervisedServices(run)
        for index in range(3):
            ready(supervised.add(*FOREVER, name=f"machine/{index}"))
        assert len(made) == 3
        assert not are_closed()
    del supervised, run
    until(are_closed, "they are closed once the last thread of the run has ended")


def test_nothing_starts_after_the_end(supervised: SupervisedServices) -> None:
    service = ready(supervised.add(*FOREVER, restart_seconds=0.0))
    supervised.supervisor.close()
    service.start()
    assert service.state == "stopped"
    with pytest.raises(ValueError, match="its run has ended"):
        supervised.add("true", name="machine/late.service")


def test_two_services_of_one_name_are_refused(supervised: SupervisedServices) -> None:
    supervised.add("true")
    with pytest.raises(ValueError, match="a service of this name exists"):
        supervised.add("true")


def test_waiting_for_services_costs_no_processor_time(supervised: SupervisedServices) -> None:
    for index in range(20):
        ready(supervised.add(*FOREVER, name=f"machine/{index}", restart_seconds=1.0))
    began = time.process_time()
    time.sleep(1.0)
    assert time.process_time() - began < 0.2
