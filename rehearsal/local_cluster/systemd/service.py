"""Decides what becomes of one service: its steps to readiness, its restarts and its end, by systemd's rules."""

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
    """One service, driven by a thread of its own while it is wanted; every method may be called from any thread."""

    program: ServiceDefinition
    restarts: int
    """How often it was restarted by itself since it was last started by hand."""
    exit_status: int | None
    """Of its latest process that ended (minus the signal's number), None before the first."""
    ready_at: float | None
    """When it was last ready, by time.monotonic()."""

    def __init__(self, program: ServiceDefinition, marker: str, notify_path: Path, say: Callable[[str], None]) -> None:
        self.program, self.restarts, self.exit_status, self.ready_at = program, 0, None, None
        self._marker, self._notify_path, self._say = marker, notify_path, say
        self._phase = "dead"
        self._result = "success"
        self._wanted = self._closed = False
        self._stop_signal, self._stop_by = signal.SIGTERM, 0.0
        self._gate = threading.Lock()
        self._changed = threading.Condition()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        closing = weakref.finalize(self, os.close, self._wake)
        # Not at exit, where daemon threads may still wait for it while its number becomes another file's.
        closing.atexit = False
        self._processes: list[Process] = []
        self._main_pid: int | None = None
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> State:
        """What it is for a caller that waits."""
        return STATES[self._phase]

    @property
    def sub_state(self) -> str:
        """Its state in systemd's words, a key of STATES."""
        return self._phase

    @property
    def result(self) -> str:
        """How its latest life ended, in systemd's words: success, exit-code, signal, timeout or protocol."""
        return self._result

    @property
    def pid(self) -> int | None:
        """Its main process; None before that runs and once it has ended."""
        return self._main_pid

    def start(self) -> None:
        """Have it started, and return at once; nothing where it is wanted already, but for what runs again."""
        with self._gate:
            self._start()

    def stop(self, with_signal: signal.Signals = signal.SIGTERM) -> None:
        """End it and wait until it has ended: SIGTERM, then SIGKILL after stop_seconds; with SIGKILL, as in a power cut, at once."""
        with self._gate:
            self._stop(with_signal)

    def restart(self) -> None:
        """Stop and start it."""
        with self._gate:
            self._stop(signal.SIGTERM)
            self._start()

    def kill(self, with_signal: signal.Signals = signal.SIGKILL) -> None:
        """Send all its processes a signal; what ends by it is restarted as its program says."""
        for process in tuple(self._processes):
            process.signal(with_signal)

    def wait_ready(self, seconds: float) -> None:
        """Wait until it is ready; NotReady when that has not come within so many seconds, or is not to be expected any more."""
        with self._changed:
            self._changed.wait_for(lambda: self.state in ("ready", "failed", "stopped"), seconds)
            state, phase = self.state, self._phase
        if state != "ready":
            raise ServiceNotReadyError(
                self.program.name, state, phase, self.exit_status, service_log.last_lines(self.program.log), self.program.log
            )

    def outcome(self) -> str:
        """Wait until a start has succeeded or failed, however long; the sub-state then, auto-restart where it will be tried again."""
        with self._changed:
            self._changed.wait_for(lambda: self.state in ("ready", "failed", "stopped") or self._phase == "auto-restart")
            return self._phase

    def usage(self) -> ProcessUsage:
        """What its main process and that one's children use; zeros where it does not run."""
        pid = self._main_pid
        return ProcessUsage() if pid is None else process_usage(pid)

    def end_for_good(self, patience: float) -> None:
        """Have it ended within about so many seconds and never started again; returns at once."""
        with self._changed:
            self._closed = True
            self._ask_to_stop(signal.SIGTERM, min(patience, self.program.stop_seconds))

    def join(self) -> None:
        """Wait until nothing of it runs, after end_for_good."""
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        if self._phase == "auto-restart":
            os.eventfd_write(self._wake, 1)
        exited = self._phase == "exited"
        if (self._wanted or exited) and not (exited and self.program.again):
            return
        self.join()
        with self._changed:
            if self._closed:
                return
            self.restarts = 0
            self._wanted = True
            self._phase = "start"
            self._thread = threading.Thread(target=self._run, name=self.program.name, daemon=True)
            self._thread.start()

    def _stop(self, with_signal: signal.Signals) -> None:
        self._ask_to_stop(with_signal, self.program.stop_seconds)
        self.join()
        if self._phase != "dead":
            self._enter("dead")

    def _ask_to_stop(self, with_signal: signal.Signals, patience: float) -> None:
        self._wanted = False
        self._stop_signal, self._stop_by = with_signal, time.monotonic() + patience
        os.eventfd_write(self._wake, 1)

    def _enter(self, phase: str) -> None:
        with self._changed:
            self._phase = phase
            if STATES[phase] == "ready":
                self.ready_at = time.monotonic()
            self._changed.notify_all()

    def _run(self) -> None:
        """Live again and again, until it is not wanted any more or has nothing to be restarted for."""
        pause = self.program.restart_seconds
        self._woken(0)
        while self._wanted:
            self._result = self._live()
            if pause is None or self._phase == "exited" or not self._wanted:
                break
            self._say(f"{self.program.name}: ended with {status_text(self.exit_status or 0)}, starts again in {pause:g} s")
            self._enter("auto-restart")
            self._woken(pause)
            self.restarts += self._wanted
        with self._changed:
            if self._phase != "exited" or not self._wanted:
                self._phase = "failed" if self._wanted and self._result != "success" else "dead"
            self._wanted = False
            self._changed.notify_all()

    def _live(self) -> str:
        """One life, from the commands before the start to the end; its result."""
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
        """The main process's life, and the commands once it is ready; its result."""
        process = self._spawn(self.program.argv, notify)
        if process is None:
            return "exit-code"
        self._main_pid = process.pid
        self._enter("start")
        spoke = notify is None
        try:
            if not self.program.oneshot:
                spoke = notify is None or self._until_ready(process, notify)
                if spoke and self._wanted:
                    self._tell_ready(process)
            timely = self._attend(process, notify)
        finally:
            self._main_pid = None
            status = self.exit_status = self._reap(process)
        if self.program.oneshot and not status and self._wanted:
            if failed := self._after():
                return failed
            self._enter("exited")
        return "timeout" if not timely else "protocol" if not spoke and not status else result_of(status)

    def _until_ready(self, process: Process, notify: NotifySocket) -> bool:
        """Wait for READY=1; whether it came before the end and before a stop."""
        while self._wanted:
            seen = readable((process, notify, self._wake))
            if ("READY", "1") in notify.heard():
                return True
            if process.fileno() in seen:
                return False
            self._woken(0)
        return False

    def _tell_ready(self, process: Process) -> None:
        """Run the commands that follow readiness, and be ready; a command that fails ends the process."""
        if self._after() and self._wanted:
            process.signal(signal.SIGTERM)
        elif self._wanted:
            self._enter("running")

    def _after(self) -> str:
        """The commands that follow readiness: the result of the first that fails, else nothing."""
        for command in self.program.after:
            self._enter("start-post")
            if result := self._command(command):
                return result
        return ""

    def _attend(self, process: Process, notify: NotifySocket | None) -> bool:
        """Wait for a process's end, which is forced once it is not wanted any more; whether it came without SIGKILL for lateness."""
        unsignalled = timely = True
        while True:
            remaining = None
            if not self._wanted:
                late = time.monotonic() >= self._stop_by
                if unsignalled or (late and timely):
                    self._enter("stop-sigkill" if late else "stop-sigterm")
                    process.signal(signal.SIGKILL if late else self._stop_signal)
                    unsignalled, timely = False, not late
                remaining = max(0.0, self._stop_by - time.monotonic()) if timely else None
            if process.fileno() in readable((process, notify, self._wake), remaining):
                return timely
            if notify:
                notify.heard()
            self._woken(0)

    def _command(self, argv: tuple[str, ...]) -> str:
        """Run a command to its end, or to the service's; its result, nothing where it succeeded."""
        process = self._spawn(argv, None)
        if process is None:
            return "exit-code"
        try:
            timely = self._attend(process, None)
        finally:
            status = self._reap(process)
        if status or not self._wanted:
            self.exit_status = status
        if not timely:
            return "timeout"
        return "" if not status else result_of(status)

    def _spawn(self, argv: tuple[str, ...], notify: NotifySocket | None) -> Process | None:
        """Start a process in the service's environment; None, with a line in the log, where it cannot be executed."""
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
        """Take leave of a process that has ended; its exit status."""
        status = process.reap()
        self._processes.remove(process)
        return status

    def _woken(self, seconds: float) -> bool:
        """Wait to be asked to stop, at most so long; whether that came."""
        if not readable((self._wake,), seconds):
            return False
        os.eventfd_read(self._wake)
        return True
