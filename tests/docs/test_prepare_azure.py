"""The guides match the program: its resource providers, the token that API servers accept, the imports of an image's programs."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

from components.boot import authentication
from components.spec.images import ImageDefinition
from stacks.load import ROOT, load_catalog, load_plan

GUIDE = (ROOT / "docs" / "prepare-azure.md").read_text()
RECIPE = (ROOT / "docs" / "node-images.md").read_text()
GRAPHS = ROOT / "tests" / "golden" / "rehearsal"
NAMESPACES = {
    "authorization": "Microsoft.Authorization",
    "compute": "Microsoft.Compute",
    "dnsresolver": "Microsoft.Network",
    "keyvault": "Microsoft.KeyVault",
    "managedidentity": "Microsoft.ManagedIdentity",
    "network": "Microsoft.Network",
    "privatedns": "Microsoft.Network",
    "resources": "Microsoft.Resources",
    "storage": "Microsoft.Storage",
}
"""Azure's namespace of each azure-native module."""
FOR_QUOTA_ALONE = "Microsoft.Quota"
AZURE_CLI = "04b07795-8ddb-461a-bbee-02f9e1bf7b46"
SERVICES = tomllib.loads((ROOT / "services" / "pyproject.toml").read_text())
BROUGHT_ALONG = {"azure-core"}
"""Distributions that are dependencies of the listed ones."""


def test_the_guide_registers_every_resource_provider_of_the_program_and_no_other() -> None:
    used = {module for path in GRAPHS.glob("*-*.yaml") for module in re.findall(r"azure-native:(\w+):", path.read_text())}
    loop = re.search(r"for provider in (.*?); do", GUIDE, re.DOTALL)
    assert loop
    assert {word for word in loop[1].split() if word != "\\"} == {NAMESPACES[module] for module in used} | {FOR_QUOTA_ALONE}


def test_the_application_of_the_guide_issues_the_tokens_that_the_api_servers_take() -> None:
    shell = re.search(r"```console\n(app=.*?)```", GUIDE, re.DOTALL)
    assert shell
    requests = 'az() { case $1 in rest) shift $(($# - 1)); echo "$1";; ad) echo 0f0f;; esac; }\n'
    output = subprocess.run(["sh", "-c", requests + shell[1]], capture_output=True, text=True, check=True).stdout
    first, second = (json.loads(line) for line in output.splitlines() if line.startswith("{"))
    (scope,) = first["api"]["oauth2PermissionScopes"]
    assert second["api"]["preAuthorizedApplications"] == [{"appId": AZURE_CLI, "delegatedPermissionIds": [scope["id"]]}]
    assert second["api"]["oauth2PermissionScopes"] == [scope]
    assert first["groupMembershipClaims"] == "SecurityGroup"

    plan = load_plan("dev")
    (person,) = yaml.safe_load(authentication.configuration(plan))["jwt"]
    assert first["api"]["requestedAccessTokenVersion"] == 2
    assert person["issuer"] == {
        "url": f"https://login.microsoftonline.com/{plan.spec.access.tenant}/v2.0",
        "audiences": [plan.spec.access.client_id],
    }
    assert {person["claimMappings"][key]["claim"] for key in ("username", "groups")} == {"oid", "groups"}


def test_the_extra_of_the_approver_has_what_it_imports() -> None:
    loads = "import sys, services.csr_approver.cli; print(*(getattr(module, '__file__', None) for module in sys.modules.values()))"
    loaded = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    packages = [path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")]
    ours = [Path(file) for file in loaded if any(Path(file).is_relative_to(path) for path in packages)]
    beyond = {file.relative_to(ROOT).as_posix() for file in ours if not file.is_relative_to(ROOT / "services")}
    assert beyond | {"services/__init__.py"} == set(SERVICES["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"].values())
    roots = {name for file in ours for name in _imported(file)}
    assert roots - BROUGHT_ALONG == set(SERVICES["project"]["optional-dependencies"]["csr-approver"])
    assert '--constraint /tmp/constraints.txt \\"/tmp/$WHEEL[csr-approver]\\"' in RECIPE


def test_the_program_of_etcds_image_imports_the_standard_library_alone() -> None:
    files = [ROOT / "services/__init__.py", *sorted((ROOT / "services/etcd_snapshot").glob("*.py"))]
    assert len(files) > 2
    assert [_imported(file) for file in files] == [set()] * len(files)
    assert SERVICES["project"]["optional-dependencies"]["etcd-snapshot"] == []
    assert SERVICES["project"]["dependencies"] == []


def test_the_recipe_reads_only_what_the_definition_has() -> None:
    definition: ImageDefinition = load_catalog().definitions["api-server"]
    for name in re.findall(r"local\.packages\.(\w+)", RECIPE):
        assert getattr(definition.packages, name) is not None, name
    assert set(re.findall(r"local\.image\.base\.(\w+)", RECIPE)) == set(type(definition.base).model_fields)


def _imported(file: Path) -> set[str]:
    """Return the distributions that a module imports, without the standard library and gpufleet itself."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        names |= {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
        names |= {node.module} if isinstance(node, ast.ImportFrom) and node.module else set()
    found = set()
    for name in names:
        root = name.split(".")[0]
        if root in sys.stdlib_module_names or root in ("components", "services"):
            continue
        depth = 3 if name.startswith("azure.mgmt.") else 2 if root == "azure" else 1
        found.add({"yaml": "pyyaml"}.get(root, "-".join(name.split(".")[:depth])))
    return found
