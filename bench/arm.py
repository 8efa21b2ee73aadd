"""Benchmark of requests to the embedded Azure over HTTPS, compared with its HTTP server alone."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import psutil

from bench.child_process import ROOT
from bench.command import BenchOutput, run_command
from bench.figures import Figure
from bench.machine_login import LOGIN
from bench.results import record_option

READS_PER_SECOND, OPERATIONS_PER_SECOND, PAGES_PER_SECOND = 1_500.0, 300.0, 150.0
CLIENTS, PAGE_CLIENTS = 100, 8
SETS, MACHINES = 4, 600
"""Scale sets, and instances of each."""
SCENARIO = "seed: 1\nthrottling: {enabled: false}\n"
LOCATION = "southcentralus"
COMPUTE, NETWORK, GROUPS = "api-version=2026-04-01", "api-version=2026-03-01", "api-version=2025-04-01"


class BenchError(Exception):
    """A measurement that failed, with the reason."""


@dataclass(frozen=True)
class Azure:
    """A server that runs: base URL, certificate authority, environment lines that it printed, and a token."""

    base: str
    authority: str
    environment: dict[str, str]
    token: str

    @property
    def group(self) -> str:
        return f"/subscriptions/{self.environment['AZURE_SUBSCRIPTION_ID']}/resourceGroups/bench"

    def machine(self, number: int, tail: str = "") -> str:
        """Return the path of an instance, counted over all scale sets."""
        scale_set, instance = number % SETS, number // SETS % MACHINES
        return (
            f"{self.group}/providers/Microsoft.Compute/virtualMachineScaleSets/pool{scale_set}/virtualMachines/{instance}{tail}?{COMPUTE}"
        )

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send one request, and return the body of its response; raise HTTPError if it is refused."""
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base}{path}", content, method=method)  # noqa: S310 our own server
        request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=self.authority), timeout=120) as answer:  # noqa: S310 our own server
            return json.loads(answer.read() or b"null")


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option("--seconds", type=click.IntRange(1, 120), default=8, show_default=True, help="How long each load lasts.")
@click.option("--clients", type=click.IntRange(1, 1_000), default=CLIENTS, show_default=True, help="Clients at once.")
@record_option
def main(seconds: int, clients: int, record: bool) -> None:
    """Measure how many requests the embedded Azure answers over HTTPS.

    \b
    floor       a bare aiohttp handler that answers a constant of the same size, over the same TLS
    reads       GETs of resource groups, scale sets, instances and their views
    operations  a restart, a reimage or a protection of one of 2,400 instances, each written to the journal before it is answered
    pages       lists of 100 instances, with and without instance views, by CPU second of the server, which one core gives in a second;
                beside a constant of the same size, and Python's json module encoding the same page

    Throttling is off. The load comes from a program in Go, which is built first; server and load share the machine's cores, so close
    what else uses them. Exits 0 when both bounds are kept, 1 when one is missed, 2 when something could not be measured.
    """
    output = BenchOutput()
    with tempfile.TemporaryDirectory(prefix="gpufleet-bench-") as folder:
        figures = measure(Path(folder), seconds, clients)
    if record:
        output.record("arm", "Requests to the embedded Azure over HTTPS", "python -m bench.arm", figures)
    output.conclude(figures)


def measure(folder: Path, seconds: int, clients: int) -> list[Figure]:
    """Return floor, reads and operations, in this order; raise BenchError."""
    load = built(folder)
    (folder / "scenario.yaml").write_text(SCENARIO)
    command = [str(Path(sys.executable).with_name("gpufleet")), "azure", "dev", "--clock", "scaled:10000"]
    with served([*command, "--state", str(folder / "state"), "--scenario", str(folder / "scenario.yaml")]) as (output, process):
        azure = signed_in(output)
        populate(azure)
        size = len(json.dumps(azure.ask("GET", azure.machine(0)), separators=(",", ":")))
        with served([sys.executable, "-m", "bench.bare_http_server", str(folder), str(size)]) as (line, _):
            floor = run_load(load, line.split()[-1], str(folder / "ca.pem"), "x" * len(azure.token), reads(azure), seconds, clients)
        got = run_load(load, azure.base, azure.authority, azure.token, reads(azure), seconds, clients)
        done = run_load(load, azure.base, azure.authority, azure.token, operations(azure), seconds, clients, once=True)
        settle(azure)
        pages = [
            *page_figures(folder, azure, process, seconds, ""),
            *page_figures(folder, azure, process, seconds, "&$expand=instanceView"),
        ]
    check_answers("reads", got)
    check_answers("operations", done)
    return [
        Figure("bare aiohttp", floor["per_second"], "/s", None, f"a constant of {size:,} bytes; {latencies(floor)}"),
        Figure("simple GETs", got["per_second"], "/s", READS_PER_SECOND, f"{clients} clients; {latencies(got)}", at_least=True),
        Figure("the same, of the floor", 100 * got["per_second"] / floor["per_second"], "%", None, "same run"),
        Figure("instance operations", done["per_second"], "/s", OPERATIONS_PER_SECOND, f"each journaled; {latencies(done)}", at_least=True),
        Figure("the same, of the floor", 100 * done["per_second"] / floor["per_second"], "%", None, "same run"),
        *pages,
    ]


def check_answers(name: str, one: Any) -> None:
    """Raise BenchError if a load had refused or failed requests."""
    failed = {status: count for status, count in one["statuses"].items() if not status.startswith("2")}
    if failed or one["errors"]:
        raise BenchError(f"of the {name}, {failed or ''} were refused and {one['errors']} not answered")


def page_figures(folder: Path, azure: Azure, process: psutil.Process, seconds: int, query: str) -> Iterator[Figure]:
    """Yield the figures of pages of instances: stored, of both floors, and listed for the first time."""
    name = f"pages of 100 instances{' with views' if query else ''}"
    paths, content, first = first_listing(azure, process, query)
    lines = [f"GET\t{path}" for path in paths]
    with served([sys.executable, "-m", "bench.bare_http_server", str(folder), str(len(content))]) as (line, bare):
        floor, _ = pages_per_cpu_second(folder, line.split()[-1], folder / "ca.pem", "x" * len(azure.token), bare, seconds, lines)
    rate, load = pages_per_cpu_second(folder, azure.base, Path(azure.authority), azure.token, process, seconds, lines)
    encoded = encodings_per_second(content)
    how = f"per CPU second of the server; {len(content):,} bytes each; {load['per_second']:,.0f}/s beside the clients, {latencies(load)}"
    yield Figure(name, rate, "/s", PAGES_PER_SECOND, how, at_least=True)
    yield Figure("the same, of bare aiohttp", 100 * rate / floor, "%", None, f"a constant of the same size: {floor:,.0f} per CPU second")
    yield Figure("the same, of json.dumps", 100 * rate / encoded, "%", None, f"of the same page: {encoded:,.0f} per CPU second")
    yield Figure("the same, each for the first time", first, "/s", None, f"{len(paths)} pages of which nothing is stored")


def first_listing(azure: Azure, process: psutil.Process, query: str) -> tuple[list[str], bytes, float]:
    """List all instances; return the paths of the pages, the content of the first one, and the pages per CPU second of the server."""
    host = urllib.parse.urlsplit(azure.base).netloc
    connection = http.client.HTTPSConnection(host, context=ssl.create_default_context(cafile=azure.authority), timeout=120)
    connection.connect()
    paths: list[str] = []
    pages: list[bytes] = []
    began = cpu_seconds(process)
    for number in range(SETS):
        path = f"{azure.group}/providers/Microsoft.Compute/virtualMachineScaleSets/pool{number}/virtualMachines?{COMPUTE}{query}"
        while path:
            connection.request("GET", path, headers={"Authorization": f"Bearer {azure.token}"})
            paths.append(path)
            pages.append(connection.getresponse().read())
            path = json.loads(pages[-1]).get("nextLink", "").removeprefix(azure.base)
    spent = cpu_seconds(process) - began
    connection.close()
    return paths, pages[0], len(paths) / spent


def pages_per_cpu_second(
    folder: Path, base: str, authority: Path, token: str, process: psutil.Process, seconds: int, lines: list[str]
) -> tuple[float, Any]:
    """Request pages from a server; return the pages per CPU second of its process, and the measurements of the load generator."""
    began = cpu_seconds(process)
    load = run_load(folder / "load", base, str(authority), token, lines, seconds, PAGE_CLIENTS)
    check_answers("pages", load)
    return load["answered"] / (cpu_seconds(process) - began), load


def encodings_per_second(content: bytes) -> float:
    """Return how often Python's json module encodes a page in one CPU second."""
    page, count, began = json.loads(content), 0, time.process_time()
    while (spent := time.process_time() - began) < 1:
        json.dumps(page, separators=(",", ":")).encode()
        count += 1
    return count / spent


def cpu_seconds(process: psutil.Process) -> float:
    """Return the CPU seconds that a process has used."""
    used = process.cpu_times()
    return used.user + used.system


def built(folder: Path) -> Path:
    """Build the load generator with the Go on PATH, and return its path; raise BenchError."""
    target = folder / "load"
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    try:
        made = subprocess.run(
            ["go", "build", "-o", target, "."],  # noqa: S607 the Go that the person has
            cwd=ROOT / "bench" / "load",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise BenchError("there is no go on PATH, which builds the load generator; install Go 1.24 or later") from None
    if made.returncode:
        raise BenchError(f"the load generator cannot be built: {made.stderr.strip()}")
    return target


@contextmanager
def served(command: list[str]) -> Iterator[tuple[str, psutil.Process]]:
    """Run a server; yield its output up to the line with which it is ready, and its process."""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None  # noqa: S101 it was asked for
        output = ""
        try:
            for line in process.stdout:
                output += line
                if line.startswith("ready "):
                    break
            else:
                raise BenchError(f"{command[0]} did not start")
            yield output, psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)


def signed_in(output: str) -> Azure:
    """Return a signed-in client from the output of a server."""
    environment = dict(re.findall(r"export (\w+)=(\S+)", output))
    base, authority = environment["AZURE_AUTHORITY_HOST"], environment["REQUESTS_CA_BUNDLE"]
    form = {
        "grant_type": "client_credentials",
        "client_id": environment["AZURE_CLIENT_ID"],
        "client_secret": environment["AZURE_CLIENT_SECRET"],
        "scope": f"{base}/.default",
    }
    url, content = f"{base}/{environment['AZURE_TENANT_ID']}/oauth2/v2.0/token", urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(url, content, context=ssl.create_default_context(cafile=authority), timeout=60) as answer:  # noqa: S310 our own server
        return Azure(base, authority, environment, json.loads(answer.read())["access_token"])


def populate(azure: Azure) -> None:
    """Create a network and scale sets; raise BenchError if a machine is missing afterwards."""
    network = f"{azure.group}/providers/Microsoft.Network/virtualNetworks/net"
    azure.ask("PUT", f"{azure.group}?{GROUPS}", {"location": LOCATION})
    prefixes = {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}
    azure.ask("PUT", f"{network}?{NETWORK}", {"location": LOCATION, "properties": prefixes})
    settle(azure)
    azure.ask("PUT", f"{network}/subnets/nodes?{NETWORK}", {"properties": {"addressPrefix": "10.0.0.0/16"}})
    settle(azure)
    for number in range(SETS):
        path = f"{azure.group}/providers/Microsoft.Compute/virtualMachineScaleSets/pool{number}?{COMPUTE}"
        azure.ask("PUT", path, scale_set(f"{network}/subnets/nodes"))
    settle(azure)
    count = azure.ask("GET", "/admin/state")["instances"]["states"]
    if count != {"Succeeded": SETS * MACHINES}:
        raise BenchError(f"of {SETS * MACHINES} machines there are {count}")


def settle(azure: Azure) -> None:
    """Advance the clock until no operation runs."""
    azure.ask("POST", "/admin/clock", {"settle": True})


def scale_set(subnet: str) -> dict[str, Any]:
    """Return the body of a scale set of 600 machines with one address each."""
    configuration = {"name": "ip0", "properties": {"primary": True, "subnet": {"id": subnet}}}
    card = {"name": "nic", "properties": {"primary": True, "ipConfigurations": [configuration]}}
    return {
        "location": LOCATION,
        "sku": {"name": "Standard_D2s_v5", "tier": "Standard", "capacity": MACHINES},
        "properties": {
            "orchestrationMode": "Uniform",
            "singlePlacementGroup": False,
            "overprovision": False,
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {
                "osProfile": {"computerNamePrefix": "node-", **LOGIN},
                "storageProfile": {
                    "imageReference": {"publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2404", "version": "1.0.0"},
                    "osDisk": {"createOption": "FromImage", "managedDisk": {"storageAccountType": "Premium_LRS"}},
                },
                "networkProfile": {"networkInterfaceConfigurations": [card]},
            },
        },
    }


def reads(azure: Azure) -> Iterator[str]:
    """Yield lines for the load generator: one GET each."""
    for number in range(1_000):
        set_path = f"{azure.group}/providers/Microsoft.Compute/virtualMachineScaleSets/pool{number % SETS}"
        yield f"GET\t{azure.machine(number)}"
        yield f"GET\t{azure.machine(number, '/instanceView')}"
        yield f"GET\t{set_path}?{COMPUTE}"
        yield f"GET\t{azure.group}?{GROUPS}"


def operations(azure: Azure) -> Iterator[str]:
    """Yield lines for the load generator: one operation on each instance."""
    protection = {"location": LOCATION, "properties": {"protectionPolicy": {"protectFromScaleIn": True}}}
    for number in range(SETS * MACHINES):
        if number % 3 == 0:
            yield f"PUT\t{azure.machine(number)}\t{json.dumps(protection)}"
        else:
            yield f"POST\t{azure.machine(number, '/restart' if number % 3 == 1 else '/reimage')}"


def run_load(
    load: Path, base: str, authority: str, token: str, lines: Iterable[str], seconds: int, clients: int, *, once: bool = False
) -> Any:
    """Run the load generator and return its measurements; raise BenchError if it fails."""
    command = [str(load), "-base", base, "-authority", authority, "-clients", str(clients), "-for", f"{seconds}s", *(["-once"] * once)]
    environment = {**os.environ, "LOAD_TOKEN": token}
    ended = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, env=environment, check=False, timeout=300)
    if ended.returncode:
        raise BenchError(f"the load generator failed: {ended.stderr.strip()}")
    return json.loads(ended.stdout)


def latencies(output: Any) -> str:
    """Return latencies as text."""
    return ", ".join(f"{name} {output['milliseconds'][name]:.0f} ms" for name in ("p50", "p90", "p99"))


if __name__ == "__main__":
    run_command(main, BenchError, OSError, subprocess.SubprocessError)
