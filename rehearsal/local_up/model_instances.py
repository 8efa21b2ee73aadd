"""Reader of live instances in the model, on virtual time, with the refusals and retries of a client of Azure."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from components.live_instances import UnreadableInstancesError
from rehearsal.azure.arm_id import parse
from rehearsal.azure.azure_native_requests import LONGEST_DELAY, RETRIED, RETRIES, back_off
from rehearsal.azure.compute.instance_network import INSTANCE
from rehearsal.azure.compute.instances import state_of
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Request
from rehearsal.local_up.update_state import Update


class ModelInstances:
    """Instances of the model that an update changes."""

    def __init__(self, update: Update) -> None:
        self._update = update

    async def __call__(self, scale_set_id: str) -> list[str]:
        """Return the states of all instances of a scale set; UnreadableInstancesError."""
        for attempt in range(1, RETRIES + 2):
            try:
                return self._read(scale_set_id)
            except AzureError as error:
                delay = error.retry_after or back_off(attempt)
                if error.status not in RETRIED or attempt > RETRIES or delay > LONGEST_DELAY:
                    raise UnreadableInstancesError.of_answer(error.status, error.code, error.message) from error
            await self._sleep(delay)
        raise AssertionError("the last attempt returns or raises")

    def _read(self, scale_set_id: str) -> list[str]:
        cloud = self._update.scheduler.cloud
        # The list of a large set has long bodies, of which only the states are needed; the request passes all checks of one.
        cloud.handle_list(Request("GET", parse(scale_set_id), principal=self._update.principal), INSTANCE)
        return [one.state for one in state_of(cloud.get(scale_set_id)).instances.values()]

    async def _sleep(self, seconds: float) -> None:
        """Wait in Azure's time."""
        passed: Future[None] = Future()
        self._update.scheduler.after(seconds, lambda: passed.set_result(None))
        await asyncio.wrap_future(passed)
