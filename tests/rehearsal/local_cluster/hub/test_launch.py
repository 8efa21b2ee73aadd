"""A command runs in a network of its own as it would run outside: its streams, its signals and its end are those of whoever started it."""

from __future__ import annotations

import errno
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hub_holder import in_network_of
from processes import ended
from waiting import until

from rehearsal.local_cluster.hub.launch import in_namespaces_of, in_new_namespaces
from rehearsal.local_cluster.hub.signal_relay import REFUSED

pytestmark = pytest.mark.usefixtures("namespaces")

RESOLVER, SERVER = "10.255.0.4", "10.255.0.5"
THERE = "/dev/shm/there"  # noqa: S108 (a memory of its own)
NEW = in_new_namespaces([RESOLVER, SERVER], RESOLVER)
COUNTING = """
import signal, sys, time
count = 0
def caught(number, frame):
    global count
    count += 1
signal.signal(signal.SIGINT, caught)
print("ready", flush=True)
until = time.monotonic() + 60
while not count and time.monotonic() < until:
    time.sleep(0.01)
time.sleep(0.3)
print("times", count, flush=True)
sys.exit(40 + count)
"""


def _run(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([*NEW, *words], input=given, capture_output=True, text=True, check=False, timeout=60)


def _beside(first: int, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*in_namespaces_of(first), *words], capture_output=True, text=True, check=False, timeout=60)


def test_loopback_is_up_and_carries_the_addresses() -> None:
    code = "import socket, sys\nfor host in sys.argv[1:]:\n    socket.create_server((host, 53)).close()\nprint('listened')"
    assert _run(sys.executable, "-c", code, RESOLVER, SERVER, "127.0.0.1").stdout == "listened\n"


def test_nothing_of_the_world_is_reached_and_no_name_is_known() -> None:
    code = """
import errno, socket, sys
for host, port in (("192.0.2.1", 443), ("127.0.0.1", int(sys.argv[1]))):
    try:
        socket.create_connection((host, port), 5)
        print("reached", host)
    except OSError as error:
        print(errno.errorcode[error.errno])
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[2])
    print("reached a socket by its name")
except OSError as error:
    print(errno.errorcode[error.errno])
try:
    print(socket.getaddrinfo("management.azure.com", 443))
except OSError as error:
    print("no such name")
"""
    name = f"\0gpufleet-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as outside, socket.socket(socket.AF_UNIX) as named:
        named.bind(name)
        named.listen()
        done = _run(sys.executable, "-c", code.replace("sys.argv[2]", repr(name)), str(outside.getsockname()[1]))
    assert done.stdout.split("\n")[:4] == ["ENETUNREACH", "ECONNREFUSED", "ECONNREFUSED", "no such name"], done.stderr


def test_streams_and_exit_status_pass() -> None:
    done = _run("sh", "-c", "cat; echo said >&2; exit 37", given="given\n")
    assert (done.returncode, done.stdout, done.stderr) == (37, "given\n", "said\n")


def test_a_command_that_a_signal_ends_ends_whoever_waits_by_the_same() -> None:
    assert _run("sh", "-c", "kill -KILL $$").returncode == -signal.SIGKILL


def test_a_program_that_is_not_there_is_told_as_a_shell_does() -> None:
    done = _run("no-such-program")
    assert (done.returncode, done.stderr) == (127, "no-such-program cannot be executed: No such file or directory\n")


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["the process alone", "its whole group"])
def test_an_interrupt_reaches_the_command_once_however_it_is_sent(send: Callable[[int, int], None]) -> None:
    argv = [*NEW, sys.executable, "-c", COUNTING]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        send(process.pid, signal.SIGINT)
        assert process.stdout.read() == "times 1\n"
        assert process.wait(60) == 41


def test_ctrl_c_on_a_terminal_reaches_the_command_once() -> None:
    terminal, end = pty.openpty()
    # Not pty.fork, which may crash in a process that other tests have made speak gRPC.
    process = subprocess.Popen(["setsid", "--ctty", *NEW, sys.executable, "-c", COUNTING], stdin=end, stdout=end, stderr=end)
    os.close(end)
    said = b""
    while b"ready" not in said:
        said += os.read(terminal, 100)
    os.write(terminal, b"\x03")
    while not re.search(rb"times \d", said):
        said += os.read(terminal, 100)
    assert b"times 1" in said
    assert process.wait(60) == 41
    os.close(terminal)


def test_kill_9_leaves_nothing_not_even_what_left_the_session() -> None:
    process = subprocess.Popen([*NEW, "sh", "-c", "setsid sleep 1000 & sleep 1000 & wait"])
    found = until(lambda: len(in_network_of(process.pid)) >= 5 and in_network_of(process.pid), "all of it runs")
    process.kill()
    process.wait()
    until(lambda: all(map(ended, found or [])), "all has ended", 30)


def test_what_is_left_behind_ends_with_the_command() -> None:
    process = subprocess.Popen([*NEW, "sh", "-c", "setsid sleep 1000 & read line; exit 5"], stdin=subprocess.PIPE)
    found = until(lambda: len(in_network_of(process.pid)) >= 4 and in_network_of(process.pid), "all of it runs")
    process.communicate(b"end\n")
    assert process.wait(60) == 5
    until(lambda: all(map(ended, found or [])), "all has ended", 30)


def test_a_command_beside_another_is_in_the_same_place_and_ends_with_it() -> None:
    code = f"import socket, time\nsocket.create_server(('{SERVER}', 6443))\nopen('{THERE}', 'w').close()\ntime.sleep(1000)"
    with subprocess.Popen([*NEW, sys.executable, "-c", code + "\n"]) as first:
        until(lambda: not _beside(first.pid, "test", "-e", THERE).returncode, "it is there")
        done = _beside(first.pid, "sh", "-c", "pwd; readlink /proc/self >/dev/null; exit 9")
        assert (done.returncode, done.stdout) == (9, f"{Path.cwd()}\n")
        second = subprocess.Popen([*in_namespaces_of(first.pid), "sleep", "1002"])
        until(lambda: any(_is(one, "1002") for one in in_network_of(first.pid)), "the second runs")
        first.kill()
        assert second.wait(30) in (-signal.SIGKILL, 1)


def test_a_command_that_is_killed_by_its_handle_beside_is_gone() -> None:
    with subprocess.Popen([*NEW, "sleep", "1000"]) as first:
        until(lambda: len(in_network_of(first.pid)) >= 3, "it runs")
        second = subprocess.Popen([*in_namespaces_of(first.pid), "sleep", "1001"])
        own = until(lambda: [one for one in in_network_of(first.pid) if _is(one, "1001")], "the second runs")
        second.kill()
        second.wait()
        until(lambda: all(map(ended, own)), "it is gone", 30)
        first.kill()


def test_a_place_that_is_gone_is_told_in_a_sentence() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    done = _beside(gone.pid, "true")
    assert done.returncode == REFUSED
    assert os.strerror(errno.ENOENT) in done.stderr
    assert "Traceback" not in done.stderr


def test_anybody_has_a_place_where_the_kernel_lets_users_make_namespaces() -> None:
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("only root can become somebody else, by setpriv")
    if subprocess.run([*nobody, sys.executable, "-c", "pass"], cwd="/", check=False, capture_output=True).returncode:
        pytest.skip("this Python is not for everybody to run")
    done = subprocess.run([*nobody, *NEW, "sh", "-c", "cat /proc/self/uid_map"], cwd="/", capture_output=True, text=True, check=False)
    if done.returncode == REFUSED:
        assert done.stderr.startswith("no namespaces can be made here (unshare: ")
        assert len(done.stderr.splitlines()) == 1
    else:
        assert (done.returncode, done.stdout.split()) == (0, ["0", "65534", "1"])


def _is(pid: int, word: str) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:2] == [b"sleep", word.encode()]
    except OSError:
        return False
