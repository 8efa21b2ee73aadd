"""Program that executes a command and is killed with its parent process: `end_with_parent.py PARENT COMMAND …`.

It replaces Popen's `preexec_fn`, which makes Popen fork. In a process that uses gRPC, as Pulumi's programs do, gRPC restarts its threads in
a forked child. Those threads abort the child, or crash when Popen closes their descriptors.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""https://man7.org/linux/man-pages/man2/pr_set_pdeathsig.2const.html"""

EXEC_FAILED = 203
"""Exit status for a program that could not be executed, as in systemd (EXIT_EXEC, systemd.exec(5))."""


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # The parent ended before prctl ran.
        sys.exit(1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        # Python ignores them, and the executed program would inherit that.
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 a pinned recipe
    except OSError as error:
        print(f"{command[0]} cannot be run ({error.strerror or error})", file=sys.stderr)
        sys.exit(EXEC_FAILED)


if __name__ == "__main__":
    main()
