"""Azure Resource Manager: responses for a resource, a list, an operation or a subscription."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from aiohttp import web

from rehearsal.arm.http_request import HttpRequest
from rehearsal.arm.live_model import READS, LiveModel
from rehearsal.arm.paging import filtered, page_body
from rehearsal.arm.responses import operation_response, operation_url, poll_headers, reply, status_body
from rehearsal.arm.subscriptions import location_body, subscription_body, subscriptions_body
from rehearsal.arm.url_paths import ArmPath, ListPath, LocationPath, OperationPath, ResourcePath, SubscriptionPath, parse_arm_path
from rehearsal.azure.api_versions import check_api_version
from rehearsal.azure.arm_id import GROUP_TYPE, SUBSCRIPTION_TYPE, parse
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json, Operation, Request, Resource

RESOURCES = "Microsoft.Resources/resources"
"""Type under which resources of all types are listed."""
_RESULT_STATUS = 409


class ResourceManager:
    """Azure Resource Manager at a base URL, in front of a model."""

    def __init__(self, live: LiveModel, base: str) -> None:
        self.live, self.base = live, base
        self._asked = lru_cache(maxsize=16_384)(self._read_path)

    def answer(self, call: HttpRequest, principal: str) -> web.Response:
        """Answer a call below /subscriptions; AzureError."""
        what = self._asked(call.parts)
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
                return reply(200, location_body(self.live.cloud, what))
            case SubscriptionPath() if call.method == ("POST" if what.tail else "GET"):
                check_api_version(SUBSCRIPTION_TYPE, version)
                return reply(200, subscription_body(self.live.cloud, what))
            case _:
                raise AzureError(405, "MethodNotAllowed", f"The HTTP method '{call.method}' is not supported at this location.")

    def _read_path(self, parts: tuple[str, ...]) -> ArmPath:
        what = parse_arm_path(parts, self.live.cloud.resource_types)
        if what is None:
            raise AzureError(404, "InvalidRequestUri", f"The request URI /{'/'.join(parts)[:300]} is none of Azure Resource Manager's.")
        return what

    def _resource(self, call: HttpRequest, what: ResourcePath, version: str, principal: str) -> web.Response:
        cloud = self.live.cloud
        # A type that is not modelled is reported before its API versions, which are unknown then.
        cloud.resource_type_of(what.id)
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
            return reply(200, subscriptions_body(cloud))
        if what.type:
            cloud.resource_type_named(what.type)
        check_api_version(what.type or RESOURCES, version)
        scope = parse(what.scope)
        asking = Request("GET", scope, "", version, None, call.query, principal=principal)
        if what.type:
            return reply(200, page_body(cloud.handle_list(asking, what.type), call.query, url, cloud))
        # Handled as a list of groups, which checks permission and call rate.
        cloud.handle_list(asking, GROUP_TYPE)
        return reply(200, page_body(filtered(self._all(what.scope), call.query.get("$filter", "")), call.query, url, cloud))

    def _all(self, scope: str) -> Iterable[Resource]:
        """Return every top-level resource below a scope."""
        below = f"{scope.lower()}/"
        resources = self.live.cloud.resources.values()
        return (one for one in resources if one.key.startswith(below) and len(one.id.names) == 1 and one.id.type != GROUP_TYPE)

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
