"""Dispatch of HTTP requests to the services, and of errors to responses."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from aiohttp import web

from rehearsal.arm import resource_graph, sign_in
from rehearsal.arm.admin import admin_response
from rehearsal.arm.attested_data import Signer
from rehearsal.arm.http_request import HttpRequest, read
from rehearsal.arm.instance_metadata import MetadataRequestError, metadata_response
from rehearsal.arm.live_model import LiveModel
from rehearsal.arm.resource_manager import ResourceManager
from rehearsal.arm.responses import CORRELATION, error_response, reply, tracing_headers
from rehearsal.arm.subscriptions import tenants_body
from rehearsal.arm.tokens import MANAGEMENT, VAULT, IdentityPlatform, InvalidTokenError
from rehearsal.arm.vault_service import vault_response
from rehearsal.azure.errors import AzureError, not_modelled


@dataclass
class AzureServer:
    """The embedded Azure behind one base URL; attestation returns the signer of attested data, created when it is needed."""

    live: LiveModel
    tokens: IdentityPlatform
    attestation: Callable[[], Signer]

    @cached_property
    def manager(self) -> ResourceManager:
        return ResourceManager(self.live, self.tokens.base)

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            call = await read(request)
            return self.answer(call)
        except AzureError as error:
            return error_response(error, self.live.clock)
        except (ConnectionError, web.HTTPException):
            raise
        except Exception:  # noqa: BLE001 the client gets a response, and the traceback is printed
            return _failed()

    async def metadata_only(self, request: web.BaseRequest) -> web.StreamResponse:
        """Return the response without TLS: only the instance metadata service, as on a machine."""
        if not request.raw_path.lower().startswith("/imds/"):
            return reply(404, {"error": "Not found. Only the instance metadata service is here, below /imds<resource id of the instance>."})
        return await self(request)

    def answer(self, call: HttpRequest) -> web.Response:
        """Return the response to one call after its changes are saved; calls run one after another."""
        try:
            self.live.catch_up()
            answer = self._answer(call)
        except AzureError as error:
            answer = error_response(error, self.live.clock)
        except InvalidTokenError as error:
            answer = sign_in.token_error_response(error)
        except MetadataRequestError as error:
            answer = reply(error.status, error.body())
        self.live.settle()
        if "x-ms-return-client-request-id" in call.headers or CORRELATION in call.headers:
            answer.headers.update(tracing_headers(call.headers))
        return answer

    def _answer(self, call: HttpRequest) -> web.Response:
        match call.parts[0].lower():
            case "subscriptions":
                return self.manager.answer(call, self._signed_in(call, MANAGEMENT))
            case "imds":
                return metadata_response(call, self.live, self.tokens, self.attestation)
            case "keyvault":
                return vault_response(call, self.live, self.tokens.base, self._signed_in(call, VAULT))
            case "admin":
                self._signed_in(call, MANAGEMENT)
                return admin_response(call, self.live)
            case "tenants" if not call.parts[1:]:
                headers = self.manager.admit_read("", self._signed_in(call, MANAGEMENT))
                return reply(200, tenants_body(self.live.cloud), headers)
            case "providers" if tuple(part.lower() for part in call.parts) == resource_graph.PATH:
                self._signed_in(call, MANAGEMENT)
                return reply(200, resource_graph.graph_response(call, self.live.cloud))
            case "healthz":
                return web.Response(text="ok\n")
        if call.parts[0].lower() == "providers":
            self._signed_in(call, MANAGEMENT)
            raise not_modelled(f"{call.method} {call.path[:300]}")
        found = sign_in.sign_in_response(call, self.tokens)
        if found is None:
            raise AzureError(404, "InvalidRequestUri", f"The request URI {call.path[:300]} is none of this service's.")
        return found

    def _signed_in(self, call: HttpRequest, audiences: tuple[str, ...]) -> str:
        """Return the principal of a call; raise AzureError 401 with the challenge to sign in."""
        try:
            return self.tokens.check(call.headers.get("Authorization", ""), audiences)
        except InvalidTokenError as error:
            where = f"{self.tokens.base}/{self.tokens.tenant}"
            description = ascii(error.message)[1:-1].replace('"', "'").replace(",", ";")
            challenge = (
                f'Bearer authorization="{where}", authorization_uri="{where}", resource="{audiences[0]}", '
                f'error="invalid_token", error_description="{description}"'
            )
            raise AzureError(error.status, error.error, error.message, headers={"WWW-Authenticate": challenge}) from None


def _failed() -> web.Response:
    """Return the response to an internal error; the traceback is printed for the operator."""
    traceback.print_exc(file=sys.stderr)
    return reply(500, {"error": {"code": "InternalServerError", "message": "The embedded Azure failed; what it printed says how."}})
