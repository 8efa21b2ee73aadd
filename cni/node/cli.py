"""Command line of gpufleet-node. Exit status: 0 done, 1 failed, 2 usage error."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from cni.node import addresses, certificate, status
from cni.node.commands import CommandError
from cni.node.errors import NodeNetworkError
from cni.node.program import Program
from cni.node.reconcile import Paths

DESCRIPTION = """\
Gives pods the machine's own network addresses, counts and shapes their internet traffic, and gets the kubelet's
first certificate.

  gpufleet-node run         what gpufleet-node.service runs: puts everything in place, notifies systemd that
                            the kubelet may start, and repeats the pass every 5 seconds
  gpufleet-node apply       puts everything in place once; a second time it changes nothing
  gpufleet-node reconcile   frees addresses whose pod is gone, which run does every minute
  gpufleet-node status      shows the status; its exit status is 0 if all is in place
  gpufleet-node remove      removes everything except what running pods need; stop the service first
  gpufleet-node certificate gets the kubelet's first client certificate, which kubelet.service does before each start
"""
EPILOG = """\
It reads /etc/gpufleet/network.json, which the boot wrote, and requests the addresses of the network card from
Azure's instance metadata service. Its files in /run/gpufleet are deleted at a reboot:
network.env (the kubelet's max-pods), network-status.json, cni (reserved addresses and their pods).

When pods hang in ContainerCreating:   gpufleet-node status; journalctl -u gpufleet-node
When addresses run out:                gpufleet-node reconcile
When a machine does not join:          journalctl -u kubelet
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return its exit status."""
    options = _parser().parse_args(arguments)
    if options.verb == "certificate":
        return _certificate(options.settings, options.imds)
    paths = Paths(options.settings, options.imds, options.state, options.cni)
    program = Program(paths, _say)
    try:
        if options.verb == "status":
            return _status(paths)
        if options.verb == "apply":
            program.apply(options.patience)
        else:
            {"run": program.run, "reconcile": program.reconcile, "remove": program.remove}[options.verb]()
    except (NodeNetworkError, CommandError) as error:
        return _ended(str(error))
    except OSError as error:
        return _ended(f"{error.filename or 'the system'}: {error.strerror or error}; it can be read and written; run it as root")
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("gpufleet-node", description=DESCRIPTION, epilog=EPILOG, formatter_class=formatter, allow_abbrev=False)
    shared = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    defaults = Paths()
    shared.add_argument("--settings", type=Path, default=defaults.settings, metavar="FILE", help="default: %(default)s")
    shared.add_argument("--imds", default=defaults.imds, metavar="URL", help="the metadata service; default: %(default)s")
    shared.add_argument("--state", type=Path, default=defaults.state, metavar="FOLDER", help="default: %(default)s")
    shared.add_argument("--cni", type=Path, default=defaults.cni, metavar="FOLDER", help="of the container runtime; default: %(default)s")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb, line in (
        ("run", "put everything in place, and repeat the pass"),
        ("apply", "put everything in place once"),
        ("reconcile", "free addresses whose pod is gone"),
        ("status", "show the status"),
        ("remove", "remove everything"),
    ):
        made = verbs.add_parser(verb, parents=[shared], help=line, description=f"{line[0].upper()}{line[1:]}.", allow_abbrev=False)
        if verb == "apply":
            text = "how long to request from the metadata service until an answer is accepted; default: %(default)s"
            made.add_argument("--patience", type=float, default=120.0, metavar="SECONDS", help=text)
    text = "get the kubelet's first client certificate"
    made = verbs.add_parser("certificate", help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
    made.add_argument("--settings", type=Path, default=certificate.SETTINGS, metavar="FILE", help="default: %(default)s")
    made.add_argument("--imds", default=defaults.imds, metavar="URL", help="the metadata service; default: %(default)s")
    return parser


def _certificate(settings: Path, imds: str) -> int:
    try:
        certificate.get_certificate(settings, imds, _say)
    except NodeNetworkError as error:
        return _ended(str(error))
    except (OSError, KeyError, ValueError) as error:
        return _ended(f"{settings}: {type(error).__name__} {error}; settings of the boot; roll the machine out again")
    return 0


def _status(paths: Paths) -> int:
    now = status.read(paths.state)
    machine = now.machine
    if machine is None:
        nothing = f"{paths.state / status.FILE}: nothing since this machine booted; a pass that ended; run gpufleet-node apply as root"
        return _ended(now.problems[0] if now.problems else nothing)
    reserved = addresses.count_reserved(paths.network, frozenset(machine.secondaries))
    _say(f"network     {now.mode}, {'ready' if now.ready else 'not ready yet'}")
    _say(f"link        {machine.interface} {machine.mac} {machine.primary}/{machine.prefix_length}")
    _say(f"addresses   {len(machine.secondaries)} for pods, {reserved} of them reserved")
    _say(f"pods        {now.max_pods} at most, with those on the machine's own network")
    for kind, lines in (("warning", now.warnings), ("problem", now.problems)):
        for line in lines:
            _say(f"{kind}     {line}")
    return 0 if now.ready and not now.problems else 1


def _say(line: str) -> None:
    print(line, flush=True)


def _ended(why: str) -> int:
    print(f"gpufleet-node: {' '.join(why.split())}", file=sys.stderr, flush=True)
    return 1
