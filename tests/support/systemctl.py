"""A machine's systemctl program: it sends its arguments to the run that controls the machine's services, and prints the response.

It runs as a script with only the standard library; tests/support/unit_control.py is the server.
"""

from __future__ import annotations

import json
import socket
import sys


def main() -> int:
    """Run `systemctl.py SOCKET ARGUMENT...`; return systemctl's exit status, or 1 without a server."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(sys.argv[1])
            connection.sendall(json.dumps(sys.argv[2:]).encode())
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as response:
                result = json.loads(response.read())
    except (OSError, ValueError):
        # systemd's own words when it is not process 1.
        sys.stderr.write("Failed to connect to bus: the machine does not run\n")
        return 1
    sys.stdout.write(result["out"])
    sys.stderr.write(result["err"])
    return int(result["status"])


if __name__ == "__main__":
    sys.exit(main())
