"""Calls to an embedded Azure with one group, for the tests of resource types: each waits until nothing runs any more."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from rehearsal.azure.arm_id import parse
from rehearsal.azure.body_validation import SdkBodyReader
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.persistence import dump, load
from rehearsal.azure.registry import new_cloud
from rehearsal.azure.resource import Json, Request, Response

SUBSCRIPTION, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
TENANT = "7b0c9a44-2f0e-4f57-9c39-6a1f0f0f5a10"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/g"
LOCATION = "swedencentral"


def empty(seed: int = 0) -> Cloud:
    """An Azure of two subscriptions with nothing in it, which reads bodies as strictly as the HTTPS server."""
    cloud = new_cloud([SUBSCRIPTION, OTHER], TENANT, seed=seed)
    cloud.body_reader = SdkBodyReader()
    return cloud


class Calls:
    """A cloud with groups g and h in the first subscription and g in the other; ids may leave out `/subscriptions/…/providers/`."""

    def __init__(self) -> None:
        self.cloud = empty()
        for group in (GROUP, GROUP[:-1] + "h", GROUP.replace(SUBSCRIPTION, OTHER)):
            self.put(group, {"location": LOCATION})

    def full(self, text: str) -> str:
        return text if text.startswith("/") else f"{GROUP}/providers/{text}"

    def call(self, method: str, text: str, body: Json | None = None, action: str = "", **query: str) -> Response:
        """One request, without waiting for its end."""
        return self.cloud.handle(Request(method, parse(self.full(text)), action, body=body, query=query))

    def settled(self, answer: Response) -> Response:
        """The same when nothing runs any more; AzureError where its operation failed."""
        self.cloud.run_until_idle()
        if answer.operation is not None and answer.operation.error is not None:
            raise AzureError(409, answer.operation.error["code"], answer.operation.error["message"])
        return answer

    def put(self, text: str, body: Json | None = None) -> Json:
        self.settled(self.call("PUT", text, body or {}))
        return self.get(text)

    def get(self, text: str, **query: str) -> Json:
        body = self.call("GET", text, None, "", **query).body
        assert body is not None
        return deepcopy(body)

    def delete(self, text: str) -> None:
        self.settled(self.call("DELETE", text))

    def post(self, text: str, action: str, body: Json | None = None) -> Json:
        return self.settled(self.call("POST", text, body, action)).body or {}

    def refusal(self, method: str, text: str, body: Json | None = None, action: str = "") -> AzureError:
        """The error of a request that must be refused, and must have changed nothing."""
        before = json.dumps(dump(self.cloud))
        with pytest.raises(AzureError) as refused:
            self.call(method, text, body, action)
        assert json.dumps(dump(self.cloud)) == before
        return refused.value

    def exists(self, text: str) -> bool:
        return self.cloud.find(self.full(text)) is not None

    def rebuilt(self) -> Calls:
        """The same calls on a cloud that was saved and read back, which then saves to the same."""
        saved: Any = json.loads(json.dumps(dump(self.cloud)))
        again = object.__new__(Calls)
        again.cloud = load(saved, lambda data: empty(data["seed"]))
        assert json.loads(json.dumps(dump(again.cloud))) == saved
        return again
