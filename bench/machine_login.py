"""User of the machines in benchmarks: it signs in with a key, as Azure requires of a Linux machine without a password."""

from __future__ import annotations

from typing import Any

_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH4b0qbE0gXw2l9D4dP0v9zJ8mXyY1q5r7o0WmB3cVtN operators"
LOGIN: dict[str, Any] = {
    "adminUsername": "gpufleet",
    "linuxConfiguration": {
        "disablePasswordAuthentication": True,
        "ssh": {"publicKeys": [{"path": "/home/gpufleet/.ssh/authorized_keys", "keyData": _KEY}]},
    },
}
