"""Run one Pulumi program in this process, on one thread, and return its graph; ProgramError gives the reason for a failure."""

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
from rehearsal.program.graph import Graph
from rehearsal.program.monitor import Monitor
from rehearsal.program.registration import one_line
from stacks.program import collect_rarely

P = ParamSpec("P")
T = TypeVar("T")

NOTHING: Mapping[str, Any] = MappingProxyType({})


class ProgramError(GpufleetError):
    """A program that did not end normally: `reason` is one line, `__cause__` the original exception."""

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
    """Run `program` as Pulumi does, and return everything that it registered, except resources that failed in a live backend.

    `config` has full keys (`azure-native:location`). `stack_outputs` has the exports of earlier stacks by stack name, for
    StackReferences. `progress` is called with the number of resources after each one. Runs do not influence each other.
    Raises ProgramError where the program, a resource or the backend fails, and where the program would wait for ever.
    Must not be called while an event loop runs in this thread.
    """
    dynamic = DynamicProviders(config, project)
    monitor = Monitor(BackendMocks(backend, stack_outputs, dynamic), dynamic, project=project, stack=stack, progress=progress)
    with rare_collections(), _no_coroutine_warnings():
        try:
            advance = backend.advance if isinstance(backend, LiveBackend) else _no_next_event
            _run_to_end(_run(program, project, stack, monitor, config), advance)
        except _DeadlockError as error:
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
            # The close of the loop waits for the executor's shutdown thread; this is not a deadlock.
            selector.may_wait = True


async def _run(program: Callable[[], None], project: str, stack: str, monitor: Monitor, config: Mapping[str, str]) -> None:
    # Pulumi stores its settings in context variables; those of this task end with the task.
    settings = Settings(project, stack, monitor=monitor, organization="organization", dry_run=False)
    settings.callbacks = monitor.callbacks
    configure(settings)
    set_all_config(dict(config))
    try:
        await run_in_stack(_until_settled(program, settings))
    except Exception as error:  # noqa: BLE001 a program may raise anything
        # Pulumi raises the failure that it awaited last, not the first.
        first = settings.rpc_manager.unhandled_exception or error
        raise ProgramError(stack, one_line(first)) from first


def _until_settled(program: Callable[[], None], settings: Settings) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return a coroutine that runs the program and awaits its outputs.

    The SDK's own wait visits every output again after each one, which is quadratic in the number of resources.
    """

    async def settled() -> None:
        program()
        while pending := [output for output in settings.outputs if not output.done()]:
            await asyncio.wait(pending)

    return settled


@contextmanager
def rare_collections() -> Iterator[None]:
    """Run the cycle collector rarely inside the block.

    By default it takes half of a run's time, and grows faster than linearly in the number of resources. Several runs in one block also
    save the collections between them.
    """
    thresholds = gc.get_threshold()
    collect_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def _no_coroutine_warnings() -> Iterator[None]:
    """Suppress the warnings for coroutines that the SDK created and does not await after a failure."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        yield


def _abandon_coroutines(failed: ProgramError) -> None:
    """Release the coroutines that the traceback's local variables reference, while the warnings are suppressed."""
    if failed.__cause__ is not None:
        traceback.clear_frames(failed.__cause__.__traceback__)
    gc.collect()


def _loop(selector: "_Selector") -> asyncio.AbstractEventLoop:
    loop = asyncio.SelectorEventLoop(selector)
    loop.set_default_executor(_InlineExecutor())
    # One failure reaches many outputs that are never awaited; asyncio would print a traceback for each.
    loop.set_exception_handler(lambda _loop, _context: None)
    return loop


class _InlineExecutor(concurrent.futures.ThreadPoolExecutor):
    """Executor that runs each function at once: one thread makes the order of registration repeatable.

    A future that the function returns is returned as it is.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> concurrent.futures.Future[T]:
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        try:
            result = fn(*args, **kwargs)
            if isinstance(result, concurrent.futures.Future):
                return result
            future.set_result(result)
        except Exception as error:  # noqa: BLE001 the future carries it
            future.set_exception(error)
        return future


class _DeadlockError(GpufleetError):
    """A deadlock: every task waits for another."""


def _no_next_event() -> bool:
    """Return False: a backend without pending operations has no next event."""
    return False


class _Selector(selectors.DefaultSelector):
    """Selector that advances the backend's clock when the loop would sleep without a pending wake-up.

    The program receives each response at its virtual time, and no real time passes. Without a next event, the loop is deadlocked.
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
                raise _DeadlockError
        return woken
