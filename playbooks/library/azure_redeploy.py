#!/usr/bin/python
"""Ansible module: redeploy one machine to another host, which empties its local disks and preserves its OS disk."""

from __future__ import annotations

import os

from ansible.module_utils.basic import AnsibleModule
from azure.core.exceptions import AzureError
from azure.identity import DefaultAzureCredential
from azure.mgmt.compute import ComputeManagementClient

DOCUMENTATION = r"""
module: azure_redeploy
short_description: Redeploy one virtual machine of Azure
description:
  - Runs on the controller, with the rights of the operator, and waits until Azure is done.
author: gpufleet
options:
  subscription: {description: Subscription id., type: str, required: true}
  resource_group: {description: Resource group., type: str, required: true}
  name: {description: Name of the virtual machine., type: str, required: true}
"""

RETURN = r"""
state: {description: Provisioning state of the machine afterwards., type: str, returned: success}
"""

ARGUMENTS = {
    "subscription": {"type": "str", "required": True},
    "resource_group": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
}


def client(subscription: str) -> ComputeManagementClient:
    """Return Azure's client; GPUFLEET_RESOURCE_MANAGER selects another resource manager than the public cloud's."""
    manager = os.environ.get("GPUFLEET_RESOURCE_MANAGER")
    scopes = {"base_url": manager, "credential_scopes": [f"{manager}/.default"]} if manager else {}
    return ComputeManagementClient(DefaultAzureCredential(), subscription, **scopes)


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS)
    given = module.params
    try:
        machines = client(given["subscription"]).virtual_machines
        machines.begin_redeploy(given["resource_group"], given["name"]).result()
        state = machines.get(given["resource_group"], given["name"]).provisioning_state
    except AzureError as error:
        module.fail_json(msg=f"Azure did not redeploy {given['name']}: {error}. Run the playbook again: it continues")
    if state != "Succeeded":
        module.fail_json(msg=f"{given['name']} is {state} after its redeploy. See its activity log, then run the playbook again")
    module.exit_json(changed=True, state=state)


if __name__ == "__main__":
    main()
