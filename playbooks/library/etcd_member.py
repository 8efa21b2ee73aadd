#!/usr/bin/python
"""Ansible module: health and status of one etcd member, and whether its disk has data."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.etcd_cluster import EtcdCluster

DOCUMENTATION = r"""
module: etcd_member
short_description: Health and status of one etcd member, and whether its disk has data
description:
  - Queries the member of its own machine. Changes nothing.
author: gpufleet
options:
  name: {description: Name of the member., type: str, required: true}
  members: {description: Every planned member with name, client_url and peer_url., type: list, elements: dict, required: true}
  etcdctl: {description: Path of etcdctl., type: path, required: true}
  authority: {description: Certificate of the cluster's authority., type: path, required: true}
  certificate: {description: The member's certificate., type: path, required: true}
  key: {description: The member's key., type: path, required: true}
  data: {description: The member's data directory., type: path, required: true}
  answer_seconds: {description: Time limit of an answer., type: int, default: 5}
"""

RETURN = r"""
healthy: {description: Whether it answers a read that needs the quorum., type: bool, returned: always}
answer: {description: Its fault, empty if it is healthy., type: str, returned: always}
present: {description: Whether the data directory holds a member's data., type: bool, returned: always}
status: {description: Its own status, empty where it does not answer., type: dict, returned: always}
"""

ARGUMENTS = {
    "name": {"type": "str", "required": True},
    "members": {"type": "list", "elements": "dict", "required": True},
    "etcdctl": {"type": "path", "required": True},
    "authority": {"type": "path", "required": True},
    "certificate": {"type": "path", "required": True},
    "key": {"type": "path", "required": True, "no_log": False},
    "data": {"type": "path", "required": True},
    "answer_seconds": {"type": "int", "default": 5},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    name, cluster = module.params["name"], EtcdCluster(module.params)
    present = (Path(module.params["data"]) / "member").is_dir()
    try:
        answer = cluster.health([name])[name] if present else "its disk is empty"
        status = cluster.statuses([name]).get(name, {}) if present else {}
    except OSError as error:
        answer, status = f"{error.filename}: {error.strerror}", {}
    module.exit_json(changed=False, healthy=not answer, answer=answer, present=present, status=status)


if __name__ == "__main__":
    main()
