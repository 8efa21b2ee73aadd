"""Rights and arguments of the traffic exporter."""

from __future__ import annotations

import pytest
from planned_objects import clusters, of_kind

from cni.exporter import program
from components.boot import kubelet
from components.manifests import images
from components.manifests.owned import Object
from stacks.load import ROOT

CONTAINERFILE = (ROOT / "node-images/traffic/Containerfile").read_text()


def exporter(name: str) -> Object:
    """The exporter's pod spec."""
    (workload,) = [item for item in of_kind(name, "DaemonSet") if item["metadata"]["name"] == "gpufleet-traffic"]
    spec: Object = workload["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("name", list(clusters()))
def test_it_may_see_pods_of_kubelets_and_nothing_else(name: str) -> None:
    (role,) = [item for item in of_kind(name, "ClusterRole") if item["metadata"]["name"] == "gpufleet-traffic"]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes/pods"], "verbs": ["get"]}]
    assert not [item for item in of_kind(name, "Role") if item["metadata"]["name"] == "gpufleet-traffic"]


@pytest.mark.parametrize("name", list(clusters()))
def test_it_is_told_every_team_and_writes_nothing_but_its_own_folder(name: str) -> None:
    spec = exporter(name)
    (container,) = spec["containers"]
    assert [word for word in container["args"] if word.startswith("--team=")] == [
        f"--team={team.name}" for team in clusters()[name][1].spec.tenancy.teams
    ]
    assert [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")] == ["/run/gpufleet/traffic"]
    paths = [volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume]
    assert paths == ["/run/gpufleet/cni", "/run/gpufleet/traffic", f"{kubelet.KUBERNETES}/pki/{kubelet.AUTHORITY}.pem"]


def test_no_kubelet_watches_a_config_map_for_it() -> None:
    (projected,) = [volume["projected"] for volume in exporter("dev/dev")["volumes"] if "projected" in volume]
    assert [list(source) for source in projected["sources"]] == [["serviceAccountToken"]]


@pytest.mark.parametrize("name", list(clusters()))
def test_the_program_takes_what_it_is_given(name: str) -> None:
    (container,) = exporter(name)["containers"]
    given = {"$(NODE_IP)": "10.0.0.4", "$(NODE_NAME)": "dev-cpu-000-000000"}
    words = [word.replace("$(NODE_IP)", given["$(NODE_IP)"]).replace("$(NODE_NAME)", given["$(NODE_NAME)"]) for word in container["args"]]
    options = program.parser().parse_args(words)
    mounted = [mount["mountPath"] for mount in container["volumeMounts"]]
    assert all(
        any(str(path).startswith(mount) for mount in mounted)
        for path in (options.token, options.authority, options.state, options.reservations)
    )
    (port,) = container["ports"]
    assert (options.address, options.node, options.port) == ("10.0.0.4", "dev-cpu-000-000000", port["containerPort"])


def test_its_image_is_in_the_node_images_and_pulled_from_nowhere() -> None:
    (container,) = exporter("dev/dev")["containers"]
    assert container["imagePullPolicy"] == "Never"
    assert container["image"] == images.TRAFFIC.reference
    assert f"-t {images.TRAFFIC.reference} " in CONTAINERFILE
    assert f"gpufleet-traffic-{images.TRAFFIC.tag}.tar {images.TRAFFIC.reference}" in CONTAINERFILE


def test_its_image_holds_the_library_that_was_tested() -> None:
    lock = (ROOT / "uv.lock").read_text()
    (wheel,) = [line for line in lock.splitlines() if "prometheus_client-" in line and ".whl" in line]
    version, digest = wheel.partition("prometheus_client-")[2].partition("-")[0], wheel.partition("sha256:")[2].partition('"')[0]
    assert f"prometheus-client=={version} --hash=sha256:{digest}" in CONTAINERFILE


def test_its_image_is_of_an_exact_base() -> None:
    (base,) = [line for line in CONTAINERFILE.splitlines() if line.startswith("FROM ")]
    assert "@sha256:" in base
