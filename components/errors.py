"""Base class of the errors that gpufleet reports to a person."""

from __future__ import annotations


class GpufleetError(Exception):
    """Error with a message for a person: what is wrong, where, the bound, and what to do.

    `exit_status` is the status with which the command line ends when nothing handles the error: 2, since most of these errors reject the
    input or the environment; a class or an error sets 1 where the command ran and found a fault.
    """

    exit_status: int = 2
