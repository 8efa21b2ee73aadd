"""Notes before an update, one line each: example identities and missing stack settings."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from components.plan.model import RegionPlan
from components.plan.region import plan_region
from components.spec.images import ImageCatalog
from components.spec.region import Region
from stacks.load import REGIONS, load_catalog, load_plan, region_names
from stacks.notes import STACKS, missing_stack_files, notes, placeholders

OWN = "11111111-2222-4333-8444-555555555555"
ZEROS = "00000000-0000-0000-0000-000000000000"
OWN_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMRP/vrOAjbUnzpcftxTRZnVPl9YdoslaKIt6Y08r7Ht me"
EVERY_PLACE = (
    "access.ssh_public_key",
    "access.tenant",
    "access.client_id",
    "access.operators_group",
    "subscription",
    "clusters[].tenancy.teams[].group",
    "captures in node-images/versions.yaml",
)


def own_catalog() -> ImageCatalog:
    """The shipped catalog with captures in a subscription of one's own."""
    catalog = load_catalog()
    published = {
        name: tuple(
            entry.model_copy(
                update={
                    "captures": {place: "/".join((*one.split("/")[:2], OWN, *one.split("/")[3:])) for place, one in entry.captures.items()}
                }
            )
            for entry in entries
        )
        for name, entries in catalog.published.items()
    }
    return catalog.model_copy(update={"published": published})


def own_dev(**access: str) -> RegionPlan:
    """The region dev with identities of one's own, and keys of access as given."""
    document = yaml.safe_load((REGIONS / "dev.yaml").read_text())
    document["subscription"] = OWN
    document["access"] = {"tenant": OWN, "client_id": OWN, "operators_group": OWN, "ssh_public_key": OWN_KEY} | access
    document["clusters"][0]["tenancy"]["teams"][0]["group"] = OWN
    return plan_region(Region.model_validate(document), own_catalog())


@pytest.mark.parametrize("name", ["dev", "southcentralus", "swedencentral"])
def test_every_identity_of_a_shipped_region_is_known_for_an_example(name: str) -> None:
    assert placeholders(load_plan(name)) == EVERY_PLACE


def test_a_region_with_identities_of_its_own_is_said_nothing_of(tmp_path: Path) -> None:
    assert placeholders(own_dev()) == ()
    assert notes(str(tmp_path / "dev.yaml"), own_dev()) == ()


def test_an_identity_of_zeros_is_nobodys() -> None:
    assert placeholders(own_dev(operators_group=ZEROS)) == ("access.operators_group",)


def test_the_examples_key_is_known_under_another_comment_and_its_danger_is_named(tmp_path: Path) -> None:
    key = load_plan("dev").spec.access.ssh_public_key.replace("fleet-operators", "me@home")
    (line,) = notes(str(tmp_path / "dev.yaml"), own_dev(ssh_public_key=key))
    assert line == (
        "dev.yaml: access.ssh_public_key is still the example's, or all zeros: replace it before pulumi up, "
        "or the owner of the examples' key administers your machines"
    )


def test_images_without_a_capture_in_the_location_are_one_note_with_the_remedy(tmp_path: Path) -> None:
    document = own_dev().spec.model_dump(mode="json") | {"location": "westeurope"}
    (line,) = notes(str(tmp_path / "dev.yaml"), plan_region(Region.model_validate(document), own_catalog()))
    assert line == (
        "dev: api-server@2026.11.0, cpu@2026.11.0, etcd@2026.11.0 and nc-a100@2026.11.0 have no capture in westeurope, and a gallery takes "
        "a version from its own location only: build each in westeurope, and enter each resource id under captures in "
        "node-images/versions.yaml (docs/node-images.md). pulumi up refuses this; check and the embedded Azure assume the captures"
    )


def test_a_cluster_in_an_examples_subscription_is_named() -> None:
    document = own_dev().spec.model_dump(mode="json")
    document["clusters"][0]["subscription"] = load_plan("southcentralus").spec.subscription
    assert placeholders(plan_region(Region.model_validate(document), own_catalog())) == ("clusters[].subscription",)


@pytest.mark.parametrize("name", region_names())
def test_both_stacks_of_a_shipped_region_have_their_settings(name: str) -> None:
    assert list(missing_stack_files(load_plan(name), STACKS)) == []


def test_missing_settings_of_a_stack_are_told_in_one_line_with_what_to_do(tmp_path: Path) -> None:
    plan = load_plan("dev")
    (both,) = missing_stack_files(plan, tmp_path)
    assert both.startswith(
        "Pulumi.dev-base.yaml and Pulumi.dev.yaml are missing in stacks/: copy another region's before pulumi stack init"
    )
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {}\n")
    (one,) = missing_stack_files(plan, tmp_path)
    assert one.startswith("Pulumi.dev-base.yaml is missing in stacks/: ")
    assert one.endswith("(docs/add-a-region.md)")


def test_a_draft_elsewhere_needs_no_settings(tmp_path: Path) -> None:
    document = own_dev().spec.model_dump(mode="json") | {"name": "draft"}
    draft = plan_region(Region.model_validate(document), own_catalog())
    assert list(missing_stack_files(draft, STACKS)) != []
    assert notes(str(tmp_path / "draft.yaml"), draft) == ()
