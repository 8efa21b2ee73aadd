"""Settings of the provider, and the changes that replace its objects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from objects_made import CONFIG_MAP, Objects, config_map, kubeconfig_text
from provider_process import ProviderCallError
from pulumi.runtime.proto import provider_pb2

from rehearsal.program.graph import Secret
from rehearsal.program.pulumi_values import UNKNOWN, Json, encode

URN = "urn:pulumi:dev::gpufleet::pulumi:providers:kubernetes::it"
HERE, THERE, RENEWED = kubeconfig_text("https://here:1"), kubeconfig_text("https://there:1"), kubeconfig_text("https://here:1", "two")


def faults(objects: Objects, config: Json) -> list[str]:
    """Return the errors of CheckConfig."""
    answer = objects.client.call("CheckConfig", provider_pb2.CheckRequest(urn=URN, news=encode(config)))
    return [one.reason for one in answer.failures]


def difference(objects: Objects, old: Json, new: Json) -> tuple[list[str], list[str]]:
    """Return the result of DiffConfig: changed settings, and those that replace the objects."""
    request = provider_pb2.DiffRequest(urn=URN, id="id", olds=encode(old), old_inputs=encode(old), news=encode(new))
    answer = objects.client.call("DiffConfig", request)
    return sorted(answer.diffs), sorted(answer.replaces)


def test_the_programs_own_settings_are_taken(unconfigured: Objects) -> None:
    assert faults(unconfigured, {"kubeconfig": Secret(HERE), "clusterIdentifier": "dev/dev", "skipUpdateUnreachable": "true"}) == []
    assert faults(unconfigured, {"kubeconfig": UNKNOWN, "namespace": UNKNOWN, "deleteUnreachable": False}) == []


def test_a_path_to_a_kubeconfig_is_taken(unconfigured: Objects, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(HERE)
    assert faults(unconfigured, {"kubeconfig": str(path)}) == []
    assert difference(unconfigured, {"kubeconfig": HERE}, {"kubeconfig": str(path)}) == (["kubeconfig"], [])


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"kubeconfig": HERE, "kubeConfigg": "x"}, "kubeConfigg is no setting of this provider; did you mean kubeconfig?"),
        ({"kubeconfig": HERE, "skipUpdateUnreachable": "yes"}, "skipUpdateUnreachable is 'yes'; give true or false"),
        ({"kubeconfig": HERE, "namespace": 5}, "namespace is int; give text"),
        ({"kubeconfig": HERE, "enableServerSideApply": "false"}, "a rehearsal supports only server-side apply, which is the default"),
        ({"kubeconfig": HERE, "renderYamlToDirectory": "out"}, "renderYamlToDirectory is not supported in a rehearsal"),
        ({}, "kubeconfig is not set, and a rehearsal uses none of the environment"),
        ({"kubeconfig": "/nowhere"}, "is neither a kubeconfig's text nor a path that can be read (FileNotFoundError)"),
        ({"kubeconfig": "a: b\n"}, "kubeconfig: KeyError 'contexts'"),
        ({"kubeconfig": HERE, "context": "there"}, "give a kubeconfig with a server"),
        ({"kubeconfig": kubeconfig_text("http://here")}, "server http://here is no https address"),
        ({"kubeconfig": Secret("hush: [hush\n")}, "give a kubeconfig with a server"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(unconfigured: Objects, config: Json, said: str) -> None:
    (fault,) = faults(unconfigured, config)
    assert said in fault
    assert "hush" not in fault
    with pytest.raises(ProviderCallError) as failed:
        unconfigured.client.configure(**config)
    assert said in failed.value.sentence
    assert "hush" not in failed.value.sentence


def test_another_cluster_makes_all_objects_be_made_anew_and_another_user_none(unconfigured: Objects) -> None:
    assert difference(unconfigured, {"kubeconfig": HERE}, {"kubeconfig": HERE}) == ([], [])
    assert difference(unconfigured, {"kubeconfig": HERE}, {"kubeconfig": RENEWED}) == (["kubeconfig"], [])
    assert difference(unconfigured, {"kubeconfig": HERE}, {"kubeconfig": Secret(THERE)}) == (["kubeconfig"], ["kubeconfig"])
    assert difference(unconfigured, {"kubeconfig": HERE}, {"kubeconfig": UNKNOWN}) == (["kubeconfig"], ["kubeconfig"])
    assert difference(unconfigured, {"kubeconfig": HERE}, {"kubeconfig": HERE, "namespace": "a"}) == (["namespace"], [])


def test_an_identifier_says_alone_whether_it_is_the_same_cluster(unconfigured: Objects) -> None:
    before = {"kubeconfig": HERE, "clusterIdentifier": "a"}
    assert difference(unconfigured, before, {**before, "kubeconfig": THERE}) == (["kubeconfig"], [])
    assert difference(unconfigured, before, {**before, "kubeconfig": UNKNOWN}) == (["kubeconfig"], [])
    assert difference(unconfigured, before, {**before, "clusterIdentifier": "b"}) == (["clusterIdentifier"], ["clusterIdentifier"])
    assert difference(unconfigured, {"kubeconfig": HERE}, before) == (["clusterIdentifier"], [])


def test_functions_components_and_methods_are_refused(objects: Objects) -> None:
    with pytest.raises(ProviderCallError, match="kubernetes:yaml:decode is not a function of this provider"):
        objects.client.invoke("kubernetes:yaml:decode", {"text": "a"})
    for name, request in (("Construct", provider_pb2.ConstructRequest()), ("Call", provider_pb2.CallRequest())):
        with pytest.raises(ProviderCallError, match=f"does not serve {name}") as failed:
            objects.client.call(name, request)
        assert failed.value.code.name == "UNIMPLEMENTED"


def test_the_context_says_in_which_namespace_objects_are(kubeconfig: Path, make_objects: Callable[..., Objects]) -> None:
    document = yaml.safe_load(kubeconfig.read_text())
    document["contexts"][0]["context"]["namespace"] = "kube-public"
    objects = make_objects(kubeconfig=yaml.safe_dump(document))
    assert objects.checked(CONFIG_MAP, config_map("one"))["metadata"]["namespace"] == "kube-public"
    objects = make_objects(kubeconfig=yaml.safe_dump(document), namespace="kube-system")
    assert objects.checked(CONFIG_MAP, config_map("one"))["metadata"]["namespace"] == "kube-system"
