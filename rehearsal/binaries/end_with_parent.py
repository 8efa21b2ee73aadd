"""Program that becomes another one, which the kernel kills when the process that started it ends: `end_with_parent.py PARENT COMMAND …`.

A program of its own, not what Popen calls `preexec_fn`: that makes Popen fork, and in a process that speaks gRPC, as Pulumi's programs do,
a forked child is given gRPC's threads anew, which abort it or crash when Popen closes their descriptors.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""https://man7.org/linux/man-pages/man2/pr_set_pdeathsig.2const.html"""

EXEC_FAILED = 203
"""Exit status that stands for a program that could not be executed, as in systemd (EXIT_EXEC, systemd.exec(5))."""


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # It ended before the kernel was asked.
        sys.exit(1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        # Python ignores them from its start, and what it becomes would go on so.
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 a pinned recipe
    except OSError as error:
        print(f"{command[0]} cannot be run ({error.strerror or error})", file=sys.stderr)
        sys.exit(EXEC_FAILED)


if __name__ == "__main__":
    main()
