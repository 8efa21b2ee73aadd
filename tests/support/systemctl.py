"""A program named systemctl for one machine: hands its arguments to the run that keeps the machine's services, and tells the answer.

It runs as a script on the standard library alone; tests/support/unit_control.py answers.
"""

from __future__ import annotations

import json
import socket
import sys


def main() -> int:
    """`systemctl.py SOCKET ARGUMENT...`; the exit status that systemctl would give, 1 where nobody answers."""
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(sys.argv[1])
            asking.sendall(json.dumps(sys.argv[2:]).encode())
            asking.shutdown(socket.SHUT_WR)
            with asking.makefile("rb") as answer:
                said = json.loads(answer.read())
    except (OSError, ValueError):
        # systemd's own words when it is not process 1.
        sys.stderr.write("Failed to connect to bus: the machine does not run\n")
        return 1
    sys.stdout.write(said["out"])
    sys.stderr.write(said["err"])
    return int(said["status"])


if __name__ == "__main__":
    sys.exit(main())
