"""The program's own resources pass Check, and a second look finds no change."""

from __future__ import annotations

from provider_process import Client
from rehearsed_regions import rehearsed

from rehearsal.program.graph import Secret
from rehearsal.program.pulumi_values import has_secret


def test_every_resource_of_the_region_is_accepted_and_unchanged_the_second_time(provider: Client) -> None:
    region = rehearsed("dev")
    resources = [one for graph in (region.base, region.clusters) for one in graph if one.type.startswith("azure-native:")]
    assert len(resources) > 100
    for one in resources:
        checked, wrong = provider.check(one.type, dict(one.inputs), name=one.name)
        assert not wrong, (one.urn, wrong)
        assert {key: checked[key] for key in one.inputs} == one.inputs, "the program's inputs stay as they are"
        again, wrong = provider.check(one.type, dict(one.inputs), old=checked, name=one.name, randomSeed=b"another")
        assert not wrong
        assert again == checked
        assert provider.diff(one.type, checked, again, resource_id=one.id or "").changes == 1
        resource_id, outputs = provider.create(one.type, checked, preview=True, name=one.name)
        assert resource_id == ""
        if one.type != "azure-native:keyvault:Secret" and has_secret(one.inputs):
            assert has_secret(outputs), one.urn
        assert Secret not in map(type, outputs.values()) or has_secret(one.inputs)
