"""Azure Resource Manager: responses for a resource, a list, an operation or a subscription."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from aiohttp import web

from rehearsal.arm.http_request import HttpRequest
from rehearsal.arm.instance_pages import InstancePages
from rehearsal.arm.list_filters import item_view, listed
from rehearsal.arm.live_model import LiveModel
from rehearsal.arm.paging import page_body
from rehearsal.arm.responses import operation_response, operation_url, poll_headers, reply, status_body
from rehearsal.arm.subscriptions import check_location_path, location_body, subscription_body, subscriptions_body
from rehearsal.arm.url_paths import ArmPath, ListPath, LocationPath, OperationPath, ResourcePath, SubscriptionPath, parse_arm_path
from rehearsal.azure.api_versions import check_api_version
from rehearsal.azure.arm_id import GROUP_TYPE, SUBSCRIPTION_TYPE, parse
from rehearsal.azure.client_operations import described, operation_key
from rehearsal.azure.errors import AzureError, not_modelled
from rehearsal.azure.resource import Json, Operation, Request
from rehearsal.azure.resource_type import READS

RESOURCES = "Microsoft.Resources/resources"
"""Type under which resources of all types are listed."""
_RESULT_STATUS = 409


class ResourceManager:
    """Azure Resource Manager at a base URL, in front of a model."""

    def __init__(self, live: LiveModel, base: str) -> None:
        self.live, self.base = live, base
        self._instances = InstancePages()
        self._asked = lru_cache(maxsize=16_384)(self._read_path)

    def answer(self, call: HttpRequest, principal: str) -> web.Response:
        """Answer a call below /subscriptions; AzureError."""
        what = self._asked(call.parts)
        self._check_modelled(call, what)
        version = call.query.get("api-version", "")
        match what:
            case ResourcePath():
                return self._resource(call, what, version, principal)
            case OperationPath() if call.method == "GET":
                return self._operation(what, version, principal)
            case ListPath() if call.method == "GET":
                return self._list(call, what, version, principal)
            case LocationPath() if call.method == "GET":
                check_api_version(f"{what.provider}/{'locations' if what.location else what.what}", version)
                return reply(200, location_body(self.live.cloud, what), self.admit_read(what.subscription, principal))
            case SubscriptionPath() if call.method == ("POST" if what.tail else "GET"):
                check_api_version(SUBSCRIPTION_TYPE, version)
                return reply(200, subscription_body(self.live.cloud, what), self.admit_read(what.subscription, principal))
            case _:
                raise AzureError(405, "MethodNotAllowed", f"The HTTP method '{call.method}' is not supported at this location.")

    def admit_read(self, subscription: str, principal: str) -> dict[str, str]:
        """Count a read of a subscription, or of the tenant if it is empty; return headers, or raise AzureError."""
        headers: dict[str, str] = {}
        for gate in self.live.cloud.admission_checks:
            admit: Any = getattr(gate, "admit_read", None)
            if admit is not None:
                headers |= admit(self.live.cloud, subscription, principal)
        return headers

    def _read_path(self, parts: tuple[str, ...]) -> ArmPath | None:
        return parse_arm_path(parts, self.live.cloud.resource_types)

    def _check_modelled(self, call: HttpRequest, what: ArmPath | None) -> None:
        """Raise AzureError NotModelled. It comes before the check of the API version, whose list is unknown then."""
        cloud = self.live.cloud
        match what:
            case ResourcePath():
                cloud.modelled_type(call.method, what.id.type, what.tail)
            case ListPath() if what.type and what.type != SUBSCRIPTION_TYPE and what.type.lower() not in cloud.resource_types:
                raise not_modelled(described(f"{call.method} {what.type}", operation_key(call.method, call.path)), what.type)
            case LocationPath():
                check_location_path(what)
            case None:
                raise not_modelled(described(f"{call.method} /{'/'.join(call.parts)[:300]}", operation_key(call.method, call.path)))

    def _resource(self, call: HttpRequest, what: ResourcePath, version: str, principal: str) -> web.Response:
        check_api_version(what.id.type, version)
        request = Request(
            call.method,
            what.id,
            what.tail,
            version,
            None if call.method in READS else call.json(),
            call.query,
            call.headers.get("If-Match", ""),
            call.headers.get("If-None-Match", ""),
            principal,
        )
        answer = self.live.ask(request)
        if call.method == "HEAD":
            return reply(204, None, answer.headers)
        return operation_response(answer, self.base, version, self.live.clock)

    def _list(self, call: HttpRequest, what: ListPath, version: str, principal: str) -> web.Response:
        cloud, url = self.live.cloud, f"{self.base}{call.path}"
        if what.type == SUBSCRIPTION_TYPE:
            check_api_version(SUBSCRIPTION_TYPE, version)
            return reply(200, subscriptions_body(cloud), self.admit_read("", principal))
        check_api_version(what.type or RESOURCES, version)
        scope = parse(what.scope)
        asking = Request("GET", scope, "", version, None, call.query, principal=principal)
        # The list of all types is handled as one of groups, which checks permission and call rate.
        items = cloud.handle_list(asking, what.type or GROUP_TYPE)
        page = self._instances.page(cloud, what, call.query, url)
        if page is not None:
            return reply(200, page)
        found = listed(cloud, what.type, what.scope, call.query, items)
        return reply(200, page_body(found, call.query, url, cloud, item_view(cloud, what.type, call.query)))

    def _operation(self, what: OperationPath, version: str, principal: str) -> web.Response:
        cloud = self.live.cloud
        operation = cloud.operations.get(what.id.lower())
        if operation is None or parse(operation.key).subscription.lower() != what.subscription.lower():
            raise AzureError(404, "NotFound", f"The operation {what.id[:100]} was not found; it is kept for a day after its end.")
        provider = parse(operation.key).type.partition("/")[0]
        check_api_version(f"{provider}/locations", version)
        headers: dict[str, str] = {}
        for gate in cloud.admission_checks:
            admit: Any = getattr(gate, "admit_poll", None)
            if admit is not None:
                headers |= admit(cloud, operation, what.subscription, principal)
        if operation.running:
            headers |= poll_headers(self.live.clock)
        if not what.result:
            return reply(200, status_body(operation, operation_url(operation, "", version)), headers)
        if operation.running:
            return reply(202, None, {**headers, "Location": operation_url(operation, self.base, version, result=True)})
        if operation.error is not None:
            return reply(_RESULT_STATUS, {"error": operation.error}, headers)
        result = self._result(operation)
        return reply(204 if result is None else 200, result, headers)

    def _result(self, operation: Operation) -> Json | None:
        """Return the result of an ended operation: its own, or for a PUT the resource."""
        if operation.result is not None or operation.name != "put":
            return operation.result
        resource = self.live.cloud.find(operation.key)
        return None if resource is None else self.live.cloud.resource_type_of(resource.id).view(self.live.cloud, resource, {})
