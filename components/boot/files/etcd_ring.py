#!/usr/bin/env python3
"""Say whether an etcd member with an empty disk may start as a first member of its ring: status 0, or 3 and why not."""

from __future__ import annotations

import argparse
import errno
import http.client
import json
import os
import socket
import ssl
import sys
import urllib.error
import urllib.request

SECONDS = float(os.environ.get("GPUFLEET_ETCD_PROBE_SECONDS", "5"))
TRIES = 3
UNREACHED = {errno.ECONNREFUSED, errno.EHOSTUNREACH}
NO_SUCH_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
WAIT = 3


def absent(reason: object) -> bool:
    """Whether an error says that no etcd runs there; a name server or a network of our own that fails says nothing of the peer."""
    if isinstance(reason, socket.gaierror):
        return reason.errno in NO_SUCH_NAME
    return isinstance(reason, TimeoutError) or getattr(reason, "errno", None) in UNREACHED


def members(opener: urllib.request.OpenerDirector, peer: str) -> list[dict[str, object]] | None:
    """Members that a peer knows of, None where no etcd answers; OSError or ValueError for an answer that says nothing.

    Asked on the peer port, which answers as soon as a member runs, with or without a quorum; the client port waits for one.
    """
    for _ in range(TRIES):
        try:
            with opener.open(f"{peer}/members", timeout=SECONDS) as answer:
                found: list[dict[str, object]] = json.loads(answer.read())
                return found
        except OSError as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            if not absent(reason):
                raise
            if not isinstance(reason, TimeoutError):
                return None
    return None


def foreign(found: list[dict[str, object]], name: str, own: str) -> str | None:
    """Why a ring with these members is not this machine's to start in; None for its own first start.

    A member publishes its client URLs once it has been part of a quorum. A ring that was founded with this machine lists its name before
    it has ever run; one to which it was added later lists its URL without a name.
    """
    started = {str(entry.get("name")) for entry in found if entry.get("clientURLs")}
    if not started:
        return None
    mine = [entry for entry in found if own in entry.get("peerURLs", ())]  # type: ignore[operator]
    if any(entry.get("name") == name and not entry.get("clientURLs") for entry in mine):
        return None
    known = "of which this machine has been a member" if any(entry.get("clientURLs") for entry in mine) else "founded without this machine"
    return f"a ring {known} runs: {', '.join(sorted(started))}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gpufleet-etcd-ring", description=__doc__)
    for flag in ("name", "own", "authority", "certificate", "key"):
        parser.add_argument(f"--{flag}", required=True)
    parser.add_argument("peers", nargs="*", help="peer URLs of the other members")
    options = parser.parse_args(arguments[1:])
    asked = "its own certificate cannot be used"
    try:
        context = ssl.create_default_context(cafile=options.authority)
        context.load_cert_chain(options.certificate, options.key)
        # No proxy from the environment: no member is behind one.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        for peer in options.peers:
            # What answers without saying who it is may be the ring: to found a second one cannot be undone, to wait can.
            asked = f"{peer} answers, but not as a member of this ring"
            found = members(opener, peer)
            reason = foreign(found, options.name, options.own) if found else None
            if reason:
                print(reason)
                return WAIT
    except (OSError, ValueError, AttributeError, TypeError, http.client.HTTPException) as error:
        print(f"{asked}: {error}")
        return WAIT
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
