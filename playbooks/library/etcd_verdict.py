#!/usr/bin/python
"""Ansible module: wait until all members of an etcd cluster are healthy and equal, and check keys and revision."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.etcd_cluster import EtcdCluster, MemberRefusedError, wait

DOCUMENTATION = r"""
module: etcd_verdict
short_description: The verdict on a whole etcd cluster
description:
  - Runs on one machine of the cluster and changes nothing.
author: gpufleet
options:
  members: {description: Every planned member with name, client_url and peer_url., type: list, elements: dict, required: true}
  etcdctl: {description: Path of etcdctl., type: path, required: true}
  authority: {description: Certificate of the cluster's authority., type: path, required: true}
  certificate: {description: Certificate of the machine's member., type: path, required: true}
  key: {description: Key of the machine's member., type: path, required: true}
  keys: {description: Number of keys that the cluster must hold; unset for any number., type: int}
  least_revision: {description: Lowest allowed revision., type: int, default: 0}
  answer_seconds: {description: Time limit of an answer., type: int, default: 5}
  wait_seconds: {description: Time limit of the cluster., type: int, default: 120}
"""

RETURN = r"""
keys: {description: Keys that the cluster holds., type: int, returned: success}
revision: {description: Revision at which all members have the same hash., type: int, returned: success}
hash: {description: That hash., type: str, returned: success}
"""

ARGUMENTS = {
    "members": {"type": "list", "elements": "dict", "required": True},
    "etcdctl": {"type": "path", "required": True},
    "authority": {"type": "path", "required": True},
    "certificate": {"type": "path", "required": True},
    "key": {"type": "path", "required": True, "no_log": False},
    "keys": {"type": "int"},
    "least_revision": {"type": "int", "default": 0},
    "answer_seconds": {"type": "int", "default": 5},
    "wait_seconds": {"type": "int", "default": 120},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    given, cluster = module.params, EtcdCluster(module.params)
    found: dict[str, Any] = {}

    def step() -> str:
        found.clear()
        found.update(cluster.verdict())
        return str(found["fault"])

    try:
        wait(given["wait_seconds"], step, "Look at the journals of these members: journalctl -u etcd")
        keys = cluster.count(list(cluster.members))
        if given["keys"] is not None and keys != given["keys"]:
            raise MemberRefusedError(f"the cluster holds {keys} keys, where the snapshot holds {given['keys']}", "Restore another snapshot")
        if found["revision"] < given["least_revision"]:
            raise MemberRefusedError(
                f"the cluster is at revision {found['revision']}, below {given['least_revision']}", "Restore with a higher bump_revision"
            )
    except MemberRefusedError as refused:
        module.fail_json(msg=str(refused))
    except OSError as error:
        module.fail_json(msg=f"{error.filename}: {error.strerror}")
    module.exit_json(changed=False, keys=keys, revision=found["revision"], hash=found["hash"])


if __name__ == "__main__":
    main()
