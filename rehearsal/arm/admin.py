"""Administration endpoints of the embedded Azure: its clock, its state, and the health reports of applications."""

from __future__ import annotations

from collections import Counter

from aiohttp import web

from rehearsal.arm.http_request import HttpRequest
from rehearsal.arm.live_model import LiveModel
from rehearsal.arm.responses import reply
from rehearsal.azure import change_log
from rehearsal.azure.clock import stamp
from rehearsal.azure.compute.instances import instances_of
from rehearsal.azure.durations import span_seconds
from rehearsal.azure.errors import AzureError, invalid
from rehearsal.azure.resource import Json

LONGEST = 366 * 86_400.0
"""Seconds by which one call moves time at most."""
SCALE_SET = "Microsoft.Compute/virtualMachineScaleSets"


def admin_response(call: HttpRequest, live: LiveModel) -> web.Response:
    """Return the response to a call below /admin; raise AzureError."""
    match call.method, tuple(part.lower() for part in call.parts[1:]):
        case "GET", ("clock",):
            return reply(200, clock_state(live))
        case "POST", ("clock",):
            advance_clock(call.json() or {}, live)
            return reply(200, clock_state(live))
        case "GET", ("state",):
            return reply(200, state_summary(live))
        case "POST", ("health",):
            report_health(call.json() or {}, live)
            return reply(200, {})
        case _:
            message = (
                'GET /admin/clock, POST /admin/clock {"advance": "5m"}, GET /admin/state, POST /admin/health {"id", "health"} are here.'
            )
            raise AzureError(404, "NotFound", message)


def clock_state(live: LiveModel) -> Json:
    """Return Azure's time, the clock's factor (0 for a manual clock), and the time of the next event."""
    due = live.cloud.events.next_at()
    return {
        "now": stamp(live.cloud.now),
        "seconds": live.cloud.now,
        "factor": live.clock.factor,
        "next": None if due is None else stamp(due),
        "running": sum(one.running for one in live.cloud.operations.values()),
    }


def advance_clock(body: Json, live: LiveModel) -> None:
    """Move time on by seconds ("seconds": 300), by a span ("advance": "5m"), or until no operation runs ("settle": true); AzureError."""
    match body:
        case {"settle": True, **rest} if not rest:
            _settle(live)
        case {"advance": str() as span, **rest} if not rest:
            try:
                _move(live, span_seconds(span))
            except ValueError as error:
                raise invalid(f"advance: {span[:40]!r} {error}", "advance") from None
        case {"seconds": int() | float() as seconds, **rest} if not rest and not isinstance(seconds, bool) and 0 <= seconds <= LONGEST:
            _move(live, float(seconds))
        case _:
            raise invalid(f'The body is {{"advance": "5m"}}, {{"seconds": 300}} up to {LONGEST:g}, or {{"settle": true}}.')


def _move(live: LiveModel, seconds: float) -> None:
    live.clock.move(seconds)
    live.wait(live.clock.now())


def _settle(live: LiveModel) -> None:
    """Advance the clock until no operation runs."""
    while any(operation.running for operation in live.cloud.operations.values()):
        due = live.cloud.events.next_at()
        if due is None:
            raise AzureError(409, "Conflict", "Operations run, and nothing is planned that would end them.")
        _move(live, due - live.cloud.now)


def state_summary(live: LiveModel) -> Json:
    """Return the number of resources by type, and the states of the machines."""
    cloud = live.cloud
    sets = [cloud.resources[key] for key in cloud.index.of_type(SCALE_SET.lower())]
    machines = [one for scale_set in sets for one in instances_of(scale_set).values()]
    return {
        "clock": clock_state(live),
        "tenant": cloud.tenant,
        "subscriptions": sorted(cloud.subscriptions),
        "resources": dict(sorted(Counter(one.id.type for one in cloud.resources.values()).items())),
        "instances": {
            "count": len(machines),
            "states": dict(sorted(Counter(one.state for one in machines).items())),
            "powers": dict(sorted(Counter(one.power or "none" for one in machines).items())),
        },
        "operations": dict(sorted(Counter(one.status for one in cloud.operations.values()).items())),
        "events": len(cloud.events),
    }


def report_health(body: Json, live: LiveModel) -> None:
    """Set the application health of an instance; raise AzureError."""
    match body:
        case {"id": str() as text, "health": str() as health, **rest} if not rest:
            live.make({"do": change_log.HEALTH, "id": text, "health": health})
        case _:
            raise invalid('The body is {"id": "<resource id of an instance of a scale set>", "health": "Healthy" or "Unhealthy"}.')
