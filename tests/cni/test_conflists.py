"""Microsoft's plugins are told what their own installation tells them, and what saves them from their known traps."""

from __future__ import annotations

import json

from test_settings import with_cni

from cni import conflists
from components.boot.node import boot_nodes
from components.plan.addresses import NODE_LOCAL_DNS_ADDRESS
from stacks.load import ROOT


def test_the_list_names_mode_link_and_the_nodes_dns_cache() -> None:
    document = json.loads(conflists.azure_vnet())
    assert (document["cniVersion"], document["name"]) == ("0.3.0", "azure")
    first, second = document["plugins"]
    assert (first["mode"], first["master"], first["ipam"]) == ("transparent", "eth0", {"type": "azure-vnet-ipam"})
    assert first["ipsToRouteViaHost"] == [NODE_LOCAL_DNS_ADDRESS]
    assert second == {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}


def test_the_guide_to_images_names_every_program_that_the_list_needs() -> None:
    guide = (ROOT / "docs" / "node-images.md").read_text()
    (row,) = (line for line in guide.splitlines() if line.startswith("| node with `cni: azure-vnet` |"))
    assert all(f"`{name}`" in row for name in conflists.AZURE_PLUGINS)


def test_a_node_has_one_list_alone_and_root_alone_reads_it() -> None:
    for cni, paths in (("native", []), ("azure-vnet", [(conflists.AZURE_PATH, "0600")])):
        plan = with_cni("dev", cni)
        for pool in plan.clusters[0].pools:
            files = boot_nodes(plan, plan.clusters[0], pool)[0].files
            assert [(item.path, item.mode) for item in files if item.path.startswith("/etc/cni/")] == paths
