#!/usr/bin/python
"""Ansible module: replace one member's data with a snapshot."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.etcd_cluster import last_line

DOCUMENTATION = r"""
module: etcd_restore
short_description: Replace one etcd member's data with a snapshot
description:
  - The data is created beside the old data and moved in one step, so that a member is either unchanged or restored.
  - Revisions rise and everything before is marked compacted, so that watches of clients with later revisions end and restart.
  - See U(https://etcd.io/docs/v3.6/op-guide/recovery/) and U(https://github.com/etcd-io/etcd/issues/16028).
author: gpufleet
options:
  name: {description: Name of the member., type: str, required: true}
  members: {description: Every planned member with name and peer_url., type: list, elements: dict, required: true}
  etcdutl: {description: Path of etcdutl., type: path, required: true}
  snapshot: {description: File of the snapshot., type: path, required: true}
  data: {description: The member's data directory., type: path, required: true}
  token: {description: Token of the restored cluster, unique among all clusters., type: str, required: true}
  bump_revision: {description: Increase of revisions., type: int, default: 1000000000}
"""

RETURN = r"""
kept: {description: Path of the old data, empty if there was none., type: str, returned: always}
"""

ARGUMENTS = {
    "name": {"type": "str", "required": True},
    "members": {"type": "list", "elements": "dict", "required": True},
    "etcdutl": {"type": "path", "required": True},
    "snapshot": {"type": "path", "required": True},
    "data": {"type": "path", "required": True},
    "token": {"type": "str", "required": True},
    "bump_revision": {"type": "int", "default": 1_000_000_000},
}


def restored(given: dict[str, Any]) -> str:
    """Restore the snapshot to a directory beside the data directory; raise RuntimeError with etcdutl's error."""
    aside = f"{given['data']}.restoring"
    shutil.rmtree(aside, ignore_errors=True)
    own = next(member["peer_url"] for member in given["members"] if member["name"] == given["name"])
    cluster = ",".join(f"{member['name']}={member['peer_url']}" for member in given["members"])
    command = [given["etcdutl"], "snapshot", "restore", given["snapshot"], f"--data-dir={aside}", f"--name={given['name']}"]
    command += [f"--initial-cluster={cluster}", f"--initial-cluster-token={given['token']}", f"--initial-advertise-peer-urls={own}"]
    command += [f"--bump-revision={given['bump_revision']}", "--mark-compacted"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(aside, ignore_errors=True)
        raise RuntimeError(f"etcdutl snapshot restore: {last_line(done.stderr)}")
    return aside


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS)
    given, kept = module.params, ""
    try:
        aside = restored(given)
        if Path(given["data"]).exists():
            # Named after this restore: a second restore must not overwrite the data that the first one saved.
            kept = f"{given['data']}.discarded-{given['token']}"
            Path(given["data"]).rename(kept)
        Path(aside).rename(given["data"])
    except RuntimeError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{error.filename}: {error.strerror}")
    module.exit_json(changed=True, kept=kept)


if __name__ == "__main__":
    main()
