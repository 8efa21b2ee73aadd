"""Runs one Pulumi program to its end in this process, on one thread, and returns its graph or the one reason why there is none."""

import asyncio
import concurrent.futures
import gc
import selectors
import traceback
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from pulumi.runtime import Settings, configure
from pulumi.runtime.config import set_all_config
from pulumi.runtime.stack import run_in_stack

from components.errors import GpufleetError
from rehearsal.program.dispatch import BackendMocks, CloudBackend, LiveBackend
from rehearsal.program.dynamic_providers import DynamicProviders
from rehearsal.program.error_text import one_line
from rehearsal.program.graph import Graph
from rehearsal.program.monitor import Monitor
from stacks.program import collect_rarely

P = ParamSpec("P")
T = TypeVar("T")

NOTHING: Mapping[str, Any] = MappingProxyType({})


class ProgramError(GpufleetError):
    """A program did not reach its end: `reason` is one line, `__cause__` the exception behind it."""

    exit_status = 1

    def __init__(self, stack: str, reason: str) -> None:
        self.stack, self.reason = stack, reason
        super().__init__(f"stack {stack}: {reason}")


def run_program(
    program: Callable[[], None],
    project: str,
    stack: str,
    *,
    backend: CloudBackend | LiveBackend,
    config: Mapping[str, str] = NOTHING,
    stack_outputs: Mapping[str, Mapping[str, Any]] = NOTHING,
    progress: Callable[[int], None] | None = None,
) -> Graph:
    """Runs `program` as Pulumi would run it, and returns everything that it registered, but what a live backend let fail.

    `config` has full keys (`azure-native:location`); `stack_outputs` gives the exports of stacks rehearsed before, by stack name, to
    StackReferences; `progress` is called with the number of resources that are there so far after each. Nothing of a run stays behind
    for the next. Raises ProgramFailed where the program, a resource or the cloud fails, and where the program would wait for ever.
    Must not be called while an event loop runs in this thread.
    """
    dynamic = DynamicProviders(config, project)
    monitor = Monitor(BackendMocks(backend, stack_outputs, dynamic), dynamic, project=project, stack=stack, progress=progress)
    with rare_collections(), _no_word_of_abandoned_coroutines():
        try:
            advance = backend.advance if isinstance(backend, LiveBackend) else _nothing_happens
            _run_to_end(_run(program, project, stack, monitor, config), advance)
        except _NothingLeftToRunError as error:
            last = monitor.last_registered() or "none"
            reason = f"waits for a value that nothing will ever produce; the last resource registered was {last}"
            raise ProgramError(stack, reason) from error
        except ProgramError as failed:
            _abandon_coroutines(failed)
            raise
    return monitor.take_graph()


def _run_to_end(program: Coroutine[Any, Any, None], advance: Callable[[], bool]) -> None:
    selector = _Selector(advance)
    with asyncio.Runner(loop_factory=lambda: _loop(selector)) as runner:
        try:
            runner.run(program)
        finally:
            # Closing the loop waits for the executor's own shutdown thread, which is no deadlock.
            selector.may_wait = True


async def _run(program: Callable[[], None], project: str, stack: str, monitor: Monitor, config: Mapping[str, str]) -> None:
    # Pulumi keeps its settings in context variables, from the moment they are constructed: those of this task end with it.
    settings = Settings(project, stack, monitor=monitor, organization="organization", dry_run=False)
    configure(settings)
    set_all_config(dict(config))
    try:
        await run_in_stack(_until_settled(program, settings))
    except Exception as error:  # noqa: BLE001 a program may raise anything
        # Pulumi raises the failure that it happened to await last.
        first = settings.rpc_manager.unhandled_exception or error
        raise ProgramError(stack, one_line(first)) from first


def _until_settled(program: Callable[[], None], settings: Settings) -> Callable[[], Coroutine[Any, Any, None]]:
    """The program, and then its outputs: the SDK's own wait looks at every output again after each, which is quadratic in resources."""

    async def settled() -> None:
        program()
        while pending := [output for output in settings.outputs if not output.done()]:
            await asyncio.wait(pending)

    return settled


@contextmanager
def rare_collections() -> Iterator[None]:
    """Spares a run the half of its time that the cycle collector takes by default, and more than linearly in the number of resources.

    Around more than one run it also spares what comes between and after them a look through all that they left behind.
    """
    thresholds = gc.get_threshold()
    collect_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def _no_word_of_abandoned_coroutines() -> Iterator[None]:
    """Keeps a failed run from printing a warning for every coroutine that the SDK had made and will never await."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        yield


def _abandon_coroutines(failed: ProgramError) -> None:
    """Lets go of the coroutines while nobody listens: the traceback's local variables hold them."""
    if failed.__cause__ is not None:
        traceback.clear_frames(failed.__cause__.__traceback__)
    gc.collect()


def _loop(selector: "_Selector") -> asyncio.AbstractEventLoop:
    loop = asyncio.SelectorEventLoop(selector)
    loop.set_default_executor(_InlineExecutor())
    # One failure reaches many outputs that nobody awaits; asyncio would print a traceback for each.
    loop.set_exception_handler(lambda _loop, _context: None)
    return loop


class _InlineExecutor(concurrent.futures.ThreadPoolExecutor):
    """Runs what it is given at once: the monitor answers from memory, and one thread makes the order of registration repeatable.

    What answers with a future is answered when that is.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> concurrent.futures.Future[T]:
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        try:
            result = fn(*args, **kwargs)
            if isinstance(result, concurrent.futures.Future):
                return result
            future.set_result(result)
        except Exception as error:  # noqa: BLE001 it is handed on
            future.set_exception(error)
        return future


class _NothingLeftToRunError(GpufleetError):
    """Every task waits for another."""


def _nothing_happens() -> bool:
    """A cloud that has answered everything already."""
    return False


class _Selector(selectors.DefaultSelector):
    """Lets the cloud's time go on when the loop is about to sleep with nothing that could wake it; if nothing is left, it is a deadlock.

    So the program sees every answer at the virtual moment at which it comes, and no real time passes.
    """

    def __init__(self, advance: Callable[[], bool]) -> None:
        super().__init__()
        self.may_wait = False
        self._advance = advance

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None or self.may_wait:
            return super().select(timeout)
        while not (woken := super().select(0)):
            if not self._advance():
                self.may_wait = True
                raise _NothingLeftToRunError
        return woken
