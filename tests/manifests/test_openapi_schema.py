"""Every object fits the published schema of the Kubernetes version that the clusters run, field by field."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from planned_objects import clusters, objects

KUBERNETES = "1.36.3"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"


def _swagger(folder: Path) -> dict[str, Any]:
    """API description in the Go module of Kubernetes; skips where it cannot be had."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs go on PATH, to download the module of Kubernetes that holds its schema")
    command = [go, "mod", "download", "-json", f"k8s.io/kubernetes@v{KUBERNETES}"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"downloading k8s.io/kubernetes@v{KUBERNETES} took over 300 s")
    if done.returncode:
        pytest.skip(f"k8s.io/kubernetes@v{KUBERNETES} cannot be downloaded: {(done.stdout + done.stderr).strip()[:300]}")
    described: dict[str, Any] = json.loads((Path(json.loads(done.stdout)["Dir"]) / "api/openapi-spec/swagger.json").read_text())
    return described


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Definitions of all kinds, closed: a field that they do not name is a fault."""
    found: dict[str, Any] = _swagger(tmp_path_factory.mktemp("go"))["definitions"]
    for definition in found.values():
        if "properties" in definition:
            definition["additionalProperties"] = False
    found[INT_OR_STRING] = {"type": ["integer", "string"]}
    return found


def _faults(definitions: dict[str, Any], item: dict[str, Any]) -> list[str]:
    """List the differences of one object from its kind's schema."""
    group, _, version = item["apiVersion"].rpartition("/")
    kind = {"group": group, "version": version, "kind": item["kind"]}
    (name,) = [key for key, value in definitions.items() if kind in value.get("x-kubernetes-group-version-kind", [])]
    validator = jsonschema.Draft4Validator({"$ref": f"#/definitions/{name}", "definitions": definitions})
    return [
        f"{item['kind']} {item['metadata']['name']}{error.json_path[1:]}: {error.message[:200]}" for error in validator.iter_errors(item)
    ]


@pytest.mark.parametrize("name", list(clusters()))
def test_every_object_fits_the_schema_of_its_kind(name: str, definitions: dict[str, Any]) -> None:
    assert clusters()[name][1].spec.kubernetes == KUBERNETES
    assert [fault for item in objects(name) for fault in _faults(definitions, item)] == []


def test_the_schema_refuses_a_misspelt_field_and_a_wrong_type(definitions: dict[str, Any]) -> None:
    (coredns,) = [item for item in objects("dev/dev") if item["kind"] == "Deployment"]
    wrong = copy.deepcopy(coredns)
    wrong["spec"]["template"]["spec"]["tolerationz"] = []
    wrong["spec"]["replicas"] = "two"
    faults = _faults(definitions, wrong)
    assert len(faults) == 2
    assert any("tolerationz" in fault for fault in faults)
    assert any("$.spec.replicas" in fault or ".spec.replicas" in fault for fault in faults)
