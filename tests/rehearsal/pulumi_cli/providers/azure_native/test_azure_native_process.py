"""The provider process as the engine starts it: its port, its end, and what it costs to have one."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent import futures

import grpc  # type: ignore[import-untyped]
import psutil
import pytest
from google.protobuf import empty_pb2  # type: ignore[import-untyped]
from provider_process import ROOT, ProviderProcess, provider_process

MODULE = "rehearsal.pulumi_cli.providers.azure_native"
MEMORY_MB = 80
"""Memory of a process before its first call in MB: each provider resource of the program has one process."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(number: signal.Signals) -> None:
    with provider_process(MODULE, {}) as running:
        assert running.client.call("GetPluginInfo", empty_pb2.Empty()).version == "3.29.0"
        running.process.send_signal(number)
        assert running.process.wait(60) == 0


def test_it_ends_when_its_engine_has_gone() -> None:
    engine = grpc.server(futures.ThreadPoolExecutor(1))
    port = engine.add_insecure_port("127.0.0.1:0")
    engine.start()
    running = ProviderProcess(MODULE, {}, f"127.0.0.1:{port}")
    try:
        running.client.call("GetPluginInfo", empty_pb2.Empty())
        with pytest.raises(subprocess.TimeoutExpired):
            running.process.wait(0.5)
        engine.stop(None).wait()
        assert running.process.wait(60) == 0
    finally:
        assert running.end() == ""


def test_it_brings_neither_pulumis_sdk_nor_a_model_of_azure_with_it() -> None:
    code = (
        "import sys; sys.argv[1:] = ['127.0.0.1:1']\n"
        "import runpy\n"
        "try:\n    runpy.run_module('rehearsal.pulumi_cli.providers.azure_native', run_name='__main__')\n"
        "except SystemExit as end:\n    assert end.code == 0\n"
        "print(*(name for name in sys.modules if name.startswith(('pulumi.', 'azure.', 'rehearsal.', 'pydantic'))))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, cwd=ROOT)
    loaded = set(ended.stdout.split())
    assert "pulumi.runtime.proto.provider_pb2" in loaded
    assert not loaded & {
        "pulumi.resource",
        "pulumi.runtime.rpc",
        "azure.mgmt.compute",
        "azure.mgmt.network",
        "pydantic",
        "rehearsal.azure.cloud",
    }


def test_it_is_small_before_it_is_asked_for_anything() -> None:
    with provider_process(MODULE, {}) as running:
        assert psutil.Process(running.process.pid).memory_info().rss < MEMORY_MB << 20
