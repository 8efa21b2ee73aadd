"""Azure moves a member's machine to another host by its own client, and the member is let in again on the empty disk."""

from __future__ import annotations

from etcd_machines import EtcdMachines

from components.plan.naming import resource_id
from rehearsal.azure.compute.virtual_machine import machine_of


def host_of(etcd: EtcdMachines, name: str) -> str:
    """Host of the model on which a member's machine is."""
    cluster = etcd.cluster
    machine = resource_id(cluster.subscription, cluster.resource_group, "Microsoft.Compute", "virtualMachines", name)
    return etcd.azure.call(lambda cloud: str(machine_of(cloud.get(machine)).host))


def test_a_member_is_redeployed_and_replaced_and_a_redeploy_that_azure_refused_is_gone_on_with(etcd: EtcdMachines) -> None:
    name = etcd.names[0]
    before = host_of(etcd, name)
    refused = etcd.play("etcd-replace.yml", member=name, action="redeploy", etcd_resource_group="nowhere")
    assert refused.status != 0
    assert f"Azure did not redeploy {name}: (ResourceGroupNotFound)" in refused.said
    assert host_of(etcd, name) == before
    # What the model does to its machine is done here to the one that runs.
    etcd.machines[name].wipe_nvme()
    run = etcd.play("etcd-replace.yml", member=name, action="redeploy")
    assert run.status == 0, run.output
    assert f"{name} was replaced" in run.said
    assert host_of(etcd, name) != before
    assert etcd.voters() == etcd.names
