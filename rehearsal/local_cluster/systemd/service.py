"""Lifecycle of one service by systemd's rules: start, readiness, restart and stop."""

from __future__ import annotations

import os
import signal
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from rehearsal.binaries.end_with_parent import EXEC_FAILED
from rehearsal.local_cluster import reaper
from rehearsal.local_cluster.systemd import service_log
from rehearsal.local_cluster.systemd.process import ExecError, Process, ProcessUsage, process_usage, readable
from rehearsal.local_cluster.systemd.sd_notify import VARIABLE, NotifySocket
from rehearsal.local_cluster.systemd.service_definition import (
    STATES,
    ServiceDefinition,
    ServiceNotReadyError,
    State,
    read_environment,
    result_of,
    status_text,
)


class Service:
    """One service, controlled by its own thread while it is active; every method may be called from any thread."""

    program: ServiceDefinition
    restarts: int
    """Number of automatic restarts since the last call of start."""
    exit_status: int | None
    """Exit status of its last ended process (negative for a signal), None before the first."""
    ready_at: float | None
    """Time of its last readiness, by time.monotonic()."""

    def __init__(self, program: ServiceDefinition, marker: str, notify_path: Path, say: Callable[[str], None]) -> None:
        self.program, self.restarts, self.exit_status, self.ready_at = program, 0, None, None
        self._marker, self._notify_path, self._say = marker, notify_path, say
        self._phase = "dead"
        self._result = "success"
        self._active = self._closed = False
        self._stop_signal, self._stop_by = signal.SIGTERM, 0.0
        self._lock = threading.Lock()
        self._changed = threading.Condition()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        closing = weakref.finalize(self, os.close, self._wake)
        # Not at exit: daemon threads may still wait for the descriptor when its number is reused.
        closing.atexit = False
        self._processes: list[Process] = []
        self._main_pid: int | None = None
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> State:
        """Return the state for a waiting caller."""
        return STATES[self._phase]

    @property
    def sub_state(self) -> str:
        """Return systemd's sub-state, a key of STATES."""
        return self._phase

    @property
    def result(self) -> str:
        """Return the result of its last run in systemd's terms: success, exit-code, signal, timeout or protocol."""
        return self._result

    @property
    def pid(self) -> int | None:
        """Return the id of its main process, or None while that does not run."""
        return self._main_pid

    def start(self) -> None:
        """Start the service and return at once; do nothing if it is active, unless it is a oneshot that runs again."""
        with self._lock:
            self._start()

    def stop(self, with_signal: signal.Signals = signal.SIGTERM) -> None:
        """Stop the service and wait for its end: SIGTERM, then SIGKILL after stop_seconds; SIGKILL at once for a power cut."""
        with self._lock:
            self._stop(with_signal)

    def restart(self) -> None:
        """Stop and start it."""
        with self._lock:
            self._stop(signal.SIGTERM)
            self._start()

    def kill(self, with_signal: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to all its processes; ended ones are restarted as the definition says."""
        for process in tuple(self._processes):
            process.signal(with_signal)

    def wait_ready(self, seconds: float) -> None:
        """Wait until it is ready; raise ServiceNotReadyError after that many seconds, or once it has failed or stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self.state in ("ready", "failed", "stopped"), seconds)
            state, phase = self.state, self._phase
        if state != "ready":
            raise ServiceNotReadyError(
                self.program.name, state, phase, self.exit_status, service_log.last_lines(self.program.log), self.program.log
            )

    def outcome(self) -> str:
        """Wait until a start has succeeded or failed; return the sub-state, auto-restart if it will be retried."""
        with self._changed:
            self._changed.wait_for(lambda: self.state in ("ready", "failed", "stopped") or self._phase == "auto-restart")
            return self._phase

    def usage(self) -> ProcessUsage:
        """Return the resource usage of its main process and descendants; zeros if it does not run."""
        pid = self._main_pid
        return ProcessUsage() if pid is None else process_usage(pid)

    def end_for_good(self, patience: float) -> None:
        """Stop within about that many seconds and never start again; return at once."""
        with self._changed:
            self._closed = True
            self._request_stop(signal.SIGTERM, min(patience, self.program.stop_seconds))

    def join(self) -> None:
        """Wait until none of its processes runs, after end_for_good."""
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        if self._phase == "auto-restart":
            os.eventfd_write(self._wake, 1)
        exited = self._phase == "exited"
        if (self._active or exited) and not (exited and self.program.again):
            return
        self.join()
        with self._changed:
            if self._closed:
                return
            self.restarts = 0
            self._active = True
            self._phase = "start"
            self._thread = threading.Thread(target=self._run, name=self.program.name, daemon=True)
            self._thread.start()

    def _stop(self, with_signal: signal.Signals) -> None:
        self._request_stop(with_signal, self.program.stop_seconds)
        self.join()
        if self._phase != "dead":
            self._enter("dead")

    def _request_stop(self, with_signal: signal.Signals, patience: float) -> None:
        self._active = False
        self._stop_signal, self._stop_by = with_signal, time.monotonic() + patience
        os.eventfd_write(self._wake, 1)

    def _enter(self, phase: str) -> None:
        with self._changed:
            self._phase = phase
            if STATES[phase] == "ready":
                self.ready_at = time.monotonic()
            self._changed.notify_all()

    def _run(self) -> None:
        """Run the service, with restarts, until it is stopped or has no reason to restart."""
        pause = self.program.restart_seconds
        self._woken(0)
        while self._active:
            self._result = self._run_once()
            if pause is None or self._phase == "exited" or not self._active:
                break
            self._say(f"{self.program.name}: ended with {status_text(self.exit_status or 0)}, starts again in {pause:g} s")
            self._enter("auto-restart")
            self._woken(pause)
            self.restarts += self._active
        with self._changed:
            if self._phase != "exited" or not self._active:
                self._phase = "failed" if self._active and self._result != "success" else "dead"
            self._active = False
            self._changed.notify_all()

    def _run_once(self) -> str:
        """Run once, from the commands before the start to the end; return the result."""
        program = self.program
        program.directory.joinpath("tmp").mkdir(parents=True, exist_ok=True)
        program.log.parent.mkdir(parents=True, exist_ok=True)
        service_log.limit_size(program.log)
        for command in program.before:
            self._enter("start-pre")
            if result := self._command(command):
                return result
        notify = NotifySocket(self._notify_path) if program.notify else None
        try:
            return self._main(notify)
        finally:
            if notify:
                notify.close()

    def _main(self, notify: NotifySocket | None) -> str:
        """Run the main process, and the commands after its readiness; return the result."""
        process = self._spawn(self.program.argv, notify)
        if process is None:
            return "exit-code"
        self._main_pid = process.pid
        self._enter("start")
        notified = notify is None
        try:
            if not self.program.oneshot:
                notified = notify is None or self._until_ready(process, notify)
                if notified and self._active:
                    self._enter_running(process)
            timely = self._attend(process, notify)
        finally:
            self._main_pid = None
            status = self.exit_status = self._reap(process)
        if self.program.oneshot and not status and self._active:
            if failed := self._after():
                return failed
            self._enter("exited")
        return "timeout" if not timely else "protocol" if not notified and not status else result_of(status)

    def _until_ready(self, process: Process, notify: NotifySocket) -> bool:
        """Wait for READY=1; return True if it came before the process's end and before a stop."""
        while self._active:
            seen = readable((process, notify, self._wake))
            if ("READY", "1") in notify.received():
                return True
            if process.fileno() in seen:
                return False
            self._woken(0)
        return False

    def _enter_running(self, process: Process) -> None:
        """Run the commands after readiness and enter "running"; a failed command ends the process."""
        if self._after() and self._active:
            process.signal(signal.SIGTERM)
        elif self._active:
            self._enter("running")

    def _after(self) -> str:
        """Run the commands after readiness; return the result of the first that fails, else ""."""
        for command in self.program.after:
            self._enter("start-post")
            if result := self._command(command):
                return result
        return ""

    def _attend(self, process: Process, notify: NotifySocket | None) -> bool:
        """Wait for a process's end, which a stop forces; return False if it had to be killed after the timeout."""
        unsignalled = timely = True
        while True:
            remaining = None
            if not self._active:
                late = time.monotonic() >= self._stop_by
                if unsignalled or (late and timely):
                    self._enter("stop-sigkill" if late else "stop-sigterm")
                    process.signal(signal.SIGKILL if late else self._stop_signal)
                    unsignalled, timely = False, not late
                remaining = max(0.0, self._stop_by - time.monotonic()) if timely else None
            if process.fileno() in readable((process, notify, self._wake), remaining):
                return timely
            if notify:
                notify.received()
            self._woken(0)

    def _command(self, argv: tuple[str, ...]) -> str:
        """Run a command until it ends or the service stops; return its result, "" for success."""
        process = self._spawn(argv, None)
        if process is None:
            return "exit-code"
        try:
            timely = self._attend(process, None)
        finally:
            status = self._reap(process)
        if status or not self._active:
            self.exit_status = status
        if not timely:
            return "timeout"
        return "" if not status else result_of(status)

    def _spawn(self, argv: tuple[str, ...], notify: NotifySocket | None) -> Process | None:
        """Start a process in the service's environment; if it cannot be executed, write that to the log and return None."""
        program = self.program
        environment = {**program.environment, **read_environment(program.environment_files)}
        environment.setdefault("TMPDIR", str(program.directory / "tmp"))
        environment[reaper.MARKER] = self._marker
        if notify:
            environment[VARIABLE] = str(notify.path)
        try:
            process = Process(argv, environment, program.directory, program.log)
        except ExecError as error:
            with program.log.open("a") as log:
                log.write(f"{error}\n")
            self.exit_status = EXEC_FAILED
            return None
        self._processes.append(process)
        return process

    def _reap(self, process: Process) -> int:
        """Remove a process that has ended; return its exit status."""
        status = process.reap()
        self._processes.remove(process)
        return status

    def _woken(self, seconds: float) -> bool:
        """Wait for a stop request, at most that many seconds; return True if one came."""
        if not readable((self._wake,), seconds):
            return False
        os.eventfd_read(self._wake)
        return True
