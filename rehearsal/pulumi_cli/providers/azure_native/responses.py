"""Decides what an answer of Azure's says: its body, how long to wait, and why something was refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.errors import GpufleetError
from rehearsal.pulumi_cli.providers.pulumi_values import Json


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def body(self) -> Json | None:
        """The JSON object in it; None where there is none."""
        try:
            found = json.loads(self.content) if self.content else None
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


class AzureResponseError(GpufleetError):
    """What Azure refused, or an operation of its that failed: HTTP status (0 for an operation), Azure's code, and a sentence."""

    def __init__(self, status: int, code: str, sentence: str) -> None:
        self.status, self.code = status, code
        super().__init__(f"{code}: {sentence}" if code else sentence)

    @classmethod
    def of_answer(cls, answer: Answer) -> AzureResponseError:
        """The refusal in an answer with an error's status."""
        error = (answer.body or {}).get("error")
        if not isinstance(error, Mapping):
            text = answer.content[:300].decode(errors="replace").strip()
            return cls(answer.status, "", f"Azure answered {answer.status}{f': {text}' if text else ''}")
        return cls(answer.status, str(error.get("code", "")), _sentence(error))

    @classmethod
    def of_operation(cls, status: str, body: Json) -> AzureResponseError:
        """The failure that an operation's status tells."""
        error = body.get("error")
        if not isinstance(error, Mapping):
            return cls(0, status, "Azure does not say why")
        return cls(0, str(error.get("code", status)), _sentence(error))


def told_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds for which Azure asks to wait; None where it says nothing that can be read.

    https://github.com/Azure/azure-sdk-for-go/blob/0f9d9f4df19f46db7ff7c6ea7d5a3034f09e737e/sdk/azcore/internal/shared/shared.go
    """
    for name, unit in (("retry-after-ms", 0.001), ("x-ms-retry-after-ms", 0.001), ("Retry-After", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit)
        except (KeyError, ValueError):
            continue
    return None


def _sentence(error: Mapping[str, Any]) -> str:
    """Azure's message, and those of its details, as one line."""
    told = " ".join(str(error.get("message", "")).split())
    details = [one for one in error.get("details") or () if isinstance(one, Mapping)]
    more = [f"{one.get('code', '')}: {_sentence(one)}" for one in details if one.get("message") and str(one["message"]) not in told]
    return f"{told} ({'; '.join(more[:5])})" if more else told
