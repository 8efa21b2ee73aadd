"""Bootstrap tokens: a new one every two hours, at most three, and the vault has the newest."""

from __future__ import annotations

import base64
import datetime
from dataclasses import dataclass, field, replace

import pytest

from components.plan.access import BOOTSTRAP_TOKEN, BOOTSTRAP_TOKEN_IDS
from services.csr_approver.approval_loop import ServiceUnreachableError
from services.csr_approver.bootstrap_tokens import LIFETIME, PERIOD, BootstrapTokens, Token, next_token, secret_of, token_of

NOW = datetime.datetime(2026, 11, 24, 12, tzinfo=datetime.UTC)
MINUTE = datetime.timedelta(minutes=1)


@dataclass
class Store:
    """Secrets in memory, with versions as an API server has them."""

    stored: dict[str, Token] = field(default_factory=dict)
    writes: int = 0

    def tokens(self) -> tuple[Token, ...]:
        return tuple(self.stored.values())

    def write(self, token: Token) -> Token:
        known = self.stored.get(token.token_id)
        if (known.version if known else "") != token.version:
            raise ServiceUnreachableError("HTTP 409 Conflict from the API server")
        self.writes += 1
        self.stored[token.token_id] = replace(token, version=str(self.writes))
        return self.stored[token.token_id]


@dataclass
class Vault:
    """A vault in memory, which can be out of reach."""

    value: str = ""
    expires: datetime.datetime | None = None
    reachable: bool = True

    def set(self, name: str, value: str, expires: datetime.datetime) -> None:
        if not self.reachable:
            raise ServiceUnreachableError("HTTP 503 from the nodes' vault")
        assert name == BOOTSTRAP_TOKEN
        self.value, self.expires = value, expires


@dataclass
class Clock:
    now: datetime.datetime = NOW

    def __call__(self) -> datetime.datetime:
        return self.now


def test_every_two_hours_a_new_token_replaces_the_one_that_ends_first() -> None:
    store, vault, clock = Store(), Vault(), Clock()
    tokens, seen = BootstrapTokens(store, vault, clock), []
    for _ in range(24 * 60):
        tokens.step()
        if vault.value not in seen:
            seen.append(vault.value)
            assert vault.expires == clock.now + LIFETIME
        current = store.stored[vault.value.partition(".")[0]]
        assert vault.value == f"{current.token_id}.{current.secret}"
        assert current.expires >= clock.now + LIFETIME - PERIOD
        clock.now += MINUTE
    assert len(seen) == 12
    assert len({one.partition(".")[2] for one in seen}) == 12
    assert [one.partition(".")[0] for one in seen[:4]] == [*BOOTSTRAP_TOKEN_IDS, BOOTSTRAP_TOKEN_IDS[0]]
    assert set(store.stored) == set(BOOTSTRAP_TOKEN_IDS)
    assert store.writes == 24


def test_a_token_that_the_vault_has_not_got_is_written_at_the_next_step_and_not_created_again() -> None:
    store, vault, clock = Store(), Vault(reachable=False), Clock()
    for _ in range(3):
        with pytest.raises(ServiceUnreachableError, match="vault"):
            BootstrapTokens(store, vault, clock).step()
    assert len(store.stored) == 1
    vault.reachable = True
    # Another process, as after a crash.
    BootstrapTokens(store, vault, clock).step()
    (token,) = store.tokens()
    assert (vault.value, token.in_vault, store.writes) == (f"{token.token_id}.{token.secret}", True, 2)


def test_of_two_leaders_one_creates_the_token() -> None:
    store = Store()
    first, second = next_token(store.tokens(), NOW), next_token(store.tokens(), NOW)
    assert first is not None
    assert second is not None
    store.write(first)
    with pytest.raises(ServiceUnreachableError, match="409"):
        store.write(second)
    assert next_token(store.tokens(), NOW) is None


def test_a_secret_is_read_as_it_was_written_and_its_text_does_not_show_the_secret() -> None:
    token = next_token((), NOW)
    assert token is not None
    assert token.secret not in repr(token)
    written = secret_of(token)
    data = {key: base64.b64encode(text.encode()).decode() for key, text in written["stringData"].items()}
    assert token_of({"metadata": {**written["metadata"], "resourceVersion": "7"}, "data": data}) == replace(token, version="7")
    assert token_of({"metadata": {"name": "other", "resourceVersion": "7"}, "data": {}}) is None
