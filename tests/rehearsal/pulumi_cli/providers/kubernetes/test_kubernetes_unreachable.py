"""An unreachable cluster: remaining objects, failures and messages."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from listening_engine import Heard
from objects_made import CONFIG_MAP, Made, Objects, config_map, kubeconfig_text
from provider_process import ProviderCallError, provider_process
from resetting_relay import resets

MODULE = "rehearsal.pulumi_cli.providers.kubernetes"


@pytest.fixture
def dead() -> str:
    """A kubeconfig with a port on which no server listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return kubeconfig_text(f"https://127.0.0.1:{port}")


@pytest.fixture
def made() -> Made:
    """An object of a former update."""
    inputs = {"apiVersion": "v1", "kind": "ConfigMap", **config_map("one", a="1")}
    inputs["metadata"]["namespace"] = "default"
    return Made(CONFIG_MAP, "default/one", inputs, {**inputs, "__inputs": inputs, "__fieldManager": "manager"})


def test_objects_stay_as_they_are_with_a_warning(dead: str, made: Made, make_objects: Callable[..., Objects], engine: Heard) -> None:
    objects = make_objects(kubeconfig=dead, skipUpdateUnreachable="true")
    before = len(engine.warnings())
    checked = objects.checked(CONFIG_MAP, config_map("one", a="2"), made.inputs)
    assert checked == made.inputs
    assert not objects.client.diff(CONFIG_MAP, made.inputs, checked, made.outputs).detailedDiff
    assert objects.refreshed(made) == made
    result = engine.warnings()[before:]
    assert len(result) == 2
    assert all(one.startswith("the cluster cannot be reached: https://127.0.0.1:") for one in result)
    assert "this object remains as in the state" in result[0]
    # A new object cannot be made, and none is taken for deleted.
    with pytest.raises(
        ProviderCallError, match=r"the cluster cannot be reached: https://127.0.0.1:\d+: GET /api: Connection refused; check that"
    ) as failed:
        objects.make(CONFIG_MAP, config_map("two"))
    assert failed.value.code.name == "UNAVAILABLE"
    with pytest.raises(ProviderCallError, match="deleteUnreachable on the provider"):
        objects.remove(made)


def test_without_the_setting_every_call_fails(dead: str, made: Made, make_objects: Callable[..., Objects]) -> None:
    objects = make_objects(kubeconfig=dead)
    with pytest.raises(ProviderCallError, match="the cluster cannot be reached"):
        objects.refreshed(made)
    with pytest.raises(ProviderCallError, match="the cluster cannot be reached"):
        objects.change(made, config_map("one", a="2"))
    # A preview goes without a server.
    assert objects.client.create(CONFIG_MAP, made.inputs, preview=True) == ("", made.inputs)


def test_objects_of_a_cluster_that_is_gone_for_good_go_from_the_state(dead: str, made: Made, make_objects: Callable[..., Objects]) -> None:
    objects = make_objects(kubeconfig=dead, deleteUnreachable="true", skipUpdateUnreachable="true")
    assert objects.refreshed(made) is None
    objects.remove(made)


def test_a_name_that_nobody_has_is_a_cluster_that_cannot_be_reached(make_objects: Callable[..., Objects]) -> None:
    objects = make_objects(kubeconfig=kubeconfig_text("https://api.invalid"))
    with pytest.raises(ProviderCallError, match=r"the cluster cannot be reached: https://api\.invalid:443: GET /api: \w"):
        objects.make(CONFIG_MAP, config_map("one"))


def test_whom_the_server_does_not_know_is_told_so(kubeconfig: Path, make_objects: Callable[..., Objects]) -> None:
    text = "\n".join(line for line in kubeconfig.read_text().splitlines() if "client-" not in line)
    objects = make_objects(kubeconfig=text.replace("user: {}", "user: {token: forged}").replace("user:\n", "user: {token: forged}\n"))
    with pytest.raises(ProviderCallError, match="rejects the credentials; renew the kubeconfig's certificate or token"):
        objects.make(CONFIG_MAP, config_map("one"))


def test_connections_that_break_are_made_up_for(kubeconfig: Path) -> None:
    text = kubeconfig.read_text()
    (server,) = re.findall(r"server: [\"']?(https://[^\"'\s]+)", text)
    with resets(server, 5) as port, provider_process(MODULE, {}) as process:
        relayed = text.replace(server, f"https://127.0.0.1:{port}")
        process.client.configure(kubeconfig=relayed)
        objects = Objects(process.client)
        checked = objects.checked(CONFIG_MAP, config_map("absent"))
        for _ in range(12):
            assert objects.client.read(CONFIG_MAP, "default/absent", checked, {})[0] == ""
