"""Network namespaces for tests: creation, commands, captures, and removal with all started processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

NAMESPACES = Path("/run/netns")

CLONE_NEWNET = 0x40000000
"""https://man7.org/linux/man-pages/man2/setns.2.html"""

PATIENCE = 30.0
"""Seconds for one command."""

SETTLED = 0.3
"""Seconds after which a packet that was sent has been captured."""

NEEDED = (
    ("ip", "link", "add", "try", "type", "ifb"),
    ("tc", "qdisc", "add", "dev", "try", "root", "handle", "1:", "htb"),
    ("tc", "qdisc", "add", "dev", "try", "ingress_block", "1", "clsact"),
    ("ipset", "create", "try", "hash:ip", "skbinfo"),
    ("iptables", "-t", "raw", "-A", "PREROUTING", "-m", "set", "--match-set", "try", "src", "-j", "DROP"),
)
"""Commands that need kernel features; a kernel may lack them."""

T = TypeVar("T")


class CommandError(Exception):
    """A command in a namespace ended with another status than 0."""

    def __init__(self, namespace: str, words: tuple[str, ...], status: int, said: str) -> None:
        super().__init__(f"{namespace}: {' '.join(words)} ended with {status}: {said.strip()}")
        self.namespace, self.words, self.status, self.said = namespace, words, status, said


@dataclass
class Capture:
    """Output of tcpdump, to read after the capture has ended."""

    path: Path

    @property
    def lines(self) -> list[str]:
        """Return a line for each packet, with the link's header and lengths, without names."""
        return command("tcpdump", "-r", str(self.path), "-nn", "-e", "-t", "-v").replace("\n    ", " ").splitlines()


@dataclass
class Namespace:
    """An existing network namespace; `environment` is added to that of each process in it."""

    name: str
    environment: dict[str, str] = field(default_factory=dict)
    _started: list[subprocess.Popen[str]] = field(default_factory=list, repr=False)

    @property
    def path(self) -> Path:
        return NAMESPACES / self.name

    def run(self, *words: str, given: str | None = None, check: bool = True, timeout: float = PATIENCE) -> str:
        """Return the standard output of a command inside; with check, raise CommandError if its status is not 0."""
        inside = ("ip", "netns", "exec", self.name, *words)
        environment = os.environ | self.environment
        done = subprocess.run(inside, input=given, capture_output=True, text=True, timeout=timeout, check=False, env=environment)
        if check and done.returncode:
            raise CommandError(self.name, words, done.returncode, done.stderr or done.stdout)
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command inside, which runs until it is stopped or the namespace is removed; both outputs are pipes."""
        inside = ("ip", "netns", "exec", self.name, *words)
        process = subprocess.Popen(
            inside,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | self.environment,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def within(self, work: Callable[[], T]) -> T:
        """Call a function inside; sockets that it creates stay in the namespace, also when used outside."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self._inside, work).result()

    @contextlib.contextmanager
    def capture(self, device: str, expression: str = "") -> Iterator[Capture]:
        """Capture the packets of a device until the end of the block."""
        path = Path(tempfile.gettempdir()) / f"{self.name}-{time.monotonic_ns()}.pcap"
        process = self.start(
            "tcpdump", "-Z", "root", "-i", device, "-U", "--immediate-mode", "-B", "65536", "-w", str(path), *expression.split()
        )
        try:
            while process.stderr is not None:
                said = process.stderr.readline()
                if "listening on" in said:
                    break
                if not said:
                    raise CommandError(self.name, ("tcpdump", "-i", device, expression), process.wait(), "it captures nothing")
            yield Capture(path)
            time.sleep(SETTLED)
        finally:
            end(process, signal.SIGINT)
            self._started.remove(process)

    def remove(self) -> None:
        """End the processes inside, and remove the namespace and its captures."""
        for process in self._started:
            end(process)
        self._started.clear()
        _remove(self.name)

    def _inside(self, work: Callable[[], T]) -> T:
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            library = ctypes.CDLL(None, use_errno=True)
            if library.setns(descriptor, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), f"cannot enter {self.name}")
        finally:
            os.close(descriptor)
        return work()


def make(name: str) -> Namespace:
    """Create a namespace with loopback up."""
    command("ip", "netns", "add", name)
    command("ip", "-n", name, "link", "set", "lo", "up")
    return Namespace(name)


def command(*words: str, given: str | None = None) -> str:
    """Return the standard output of a command outside of all namespaces."""
    done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode:
        raise CommandError("the machine", words, done.returncode, done.stderr or done.stdout)
    return done.stdout


def end(process: subprocess.Popen[str], how: signal.Signals = signal.SIGKILL) -> None:
    """End a process with its children; kill those that do not end soon."""
    for each in (how, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, each)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE / 10)
            break
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def sweep() -> None:
    """Remove the namespaces and folders that killed processes left: `gf-<process>-…`."""
    for path in (*NAMESPACES.glob("gf-*"), *Path(tempfile.gettempdir()).glob("gf-*")):
        owner = re.match(r"gf-(\d+)-", path.name)
        if not owner or Path(f"/proc/{owner[1]}").exists():
            continue
        if path.parent == NAMESPACES:
            _remove(path.name)
        elif path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def why_not() -> str:
    """Return why namespaces cannot be created here; an empty string if they can."""
    if os.geteuid():
        return "network namespaces need root"
    programs = ("ip", "tc", "iptables", "ipset", "tcpdump", "iperf3")
    if missing := [name for name in programs if shutil.which(name) is None]:
        return f"no {', '.join(missing)} here (Debian packages iproute2, iptables, ipset, tcpdump and iperf3)"
    name = f"gf-{os.getpid()}-try"
    try:
        tried = make(name)
    except CommandError as error:
        return f"this machine lets nobody make a network namespace: {error.said.strip()}"
    try:
        for words in NEEDED:
            tried.run(*words)
    except CommandError as error:
        return f"the kernel has not all that the fabric needs: {' '.join(error.words)}: {error.said.strip()}"
    finally:
        tried.remove()
    return ""


def _remove(name: str) -> None:
    with contextlib.suppress(CommandError):
        for process in command("ip", "netns", "pids", name).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
    with contextlib.suppress(CommandError):
        command("ip", "netns", "delete", name)
    for left in Path(tempfile.gettempdir()).glob(f"{name}-*.pcap"):
        left.unlink(missing_ok=True)
