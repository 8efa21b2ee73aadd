"""Digest of a pool's boot files, which its nodes report as a label."""

from __future__ import annotations

import dataclasses
import re

from boot_machines import flags_of, regions

from components.boot.api_server import boot_api_server
from components.boot.machine import cloud_config
from components.boot.node import boot_digest, boot_nodes
from components.plan.node_labels import BOOT_DIGEST_LABEL

UNIT = "/etc/systemd/system/kubelet.service"
LABEL = re.compile(rf"{BOOT_DIGEST_LABEL}=([0-9a-f]{{32}})")


def test_nodes_of_every_scale_set_of_a_pool_report_the_pools_digest_and_pools_differ() -> None:
    digests = []
    for region in regions():
        for cluster in region.clusters:
            for pool in cluster.pools:
                digests.append(boot_digest(region, cluster, pool))
                labels = {flags_of(boot.file(UNIT).content)["node-labels"] for boot in boot_nodes(region, cluster, pool)}
                found = {match[1] for text in labels if (match := LABEL.search(text))}
                assert found == {digests[-1]}, pool.name
    assert len(set(digests)) == len(digests) == 10


def test_an_image_a_taint_a_label_and_the_dns_address_change_the_digest_and_growth_does_not() -> None:
    region = regions()[0]
    cluster = region.clusters[0]
    pool = cluster.pools[0]
    before = boot_digest(region, cluster, pool)
    image = dataclasses.replace(pool.image, pin="other@2026.12.0")
    network = dataclasses.replace(cluster.network, dns_service_address="10.0.0.99")
    changed = {
        boot_digest(region, cluster, dataclasses.replace(pool, image=image)),
        boot_digest(region, cluster, dataclasses.replace(pool, taints=("a=b:NoSchedule",))),
        boot_digest(region, cluster, dataclasses.replace(pool, labels=pool.labels | {"a": "b"})),
        boot_digest(region, dataclasses.replace(cluster, network=network), pool),
    }
    assert before not in changed
    assert len(changed) == 4
    assert boot_digest(region, cluster, dataclasses.replace(pool, scale_sets=pool.scale_sets * 2)) == before
    assert boot_digest(region, cluster, dataclasses.replace(pool, scale_sets=())) == before, "an empty pool has a digest"


def test_the_digest_is_in_no_boot_file_of_an_api_server() -> None:
    for region in regions():
        for cluster in region.clusters:
            assert BOOT_DIGEST_LABEL not in cloud_config(boot_api_server(region, cluster))
