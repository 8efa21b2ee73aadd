"""The options that choose between Pulumi's own engine and the one in process, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

CLOCK = "scaled:60"


@dataclass(frozen=True)
class EngineAsked:
    """What a person says of the engine: whether Pulumi's own is wanted, whether nothing else will do, and how fast Azure's time goes."""

    wanted: bool
    no_fallback: bool
    clock: str


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Which engine; the command is given EngineAsked as engine."""

    @wraps(command)
    def given(*, engine: bool, no_fallback: bool, clock: str | None, **more: Any) -> None:
        if not engine and (no_fallback or clock):
            raise click.UsageError(f"{'--no-fallback' if no_fallback else '--clock'} goes with --engine")
        command(engine=EngineAsked(engine, no_fallback, clock or CLOCK), **more)

    wrapped: Callable[..., None] = given
    for option in (clock_option, no_fallback_option, _ENGINE):
        wrapped = option(wrapped)
    return wrapped


_ENGINE = click.option(
    "--engine",
    is_flag=True,
    help="Work with Pulumi's own engine, through its CLI, inside a hub's network made here; in process where that is not to be had. "
    "The first line says which, and why.",
)
no_fallback_option = click.option("--no-fallback", is_flag=True, help="With --engine: refuse, rather than work in process.")
clock_option = click.option("--clock", help=f"With --engine: how Azure's time goes, scaled:FACTOR or real.  [default: {CLOCK}]")
