"""Sender of small datagrams, many per system call, until it is stopped: python -m bench.network.sender ADDRESS PORT."""

from __future__ import annotations

import ctypes
import socket
import sys

PAYLOAD = 18
"""Bytes that make a packet of 64 on the wire, its headers and its checksum counted."""

AT_ONCE = 64


class _Vector(ctypes.Structure):
    """struct iovec, https://man7.org/linux/man-pages/man3/iovec.3type.html"""

    _fields_ = (("base", ctypes.c_char_p), ("length", ctypes.c_size_t))


class _Message(ctypes.Structure):
    """struct mmsghdr, https://man7.org/linux/man-pages/man2/sendmmsg.2.html"""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("vectors", ctypes.POINTER(_Vector)),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("sent", ctypes.c_uint),
    )


def send(address: str, port: int) -> None:
    """Send without end."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.connect((address, port))
        vector = _Vector(b"." * PAYLOAD, PAYLOAD)
        messages = (_Message * AT_ONCE)()
        for message in messages:
            message.vectors, message.vector_count = ctypes.pointer(vector), 1
        library, descriptor = ctypes.CDLL(None), datagrams.fileno()
        while True:
            library.sendmmsg(descriptor, messages, AT_ONCE, 0)


if __name__ == "__main__":
    send(sys.argv[1], int(sys.argv[2]))
