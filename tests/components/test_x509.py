from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from components.x509 import Authority, AuthorityExpiredError, Issued, Subject, issue_authority, issue_leaf, renewal_due

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MEMBER = Subject("etcd-0", (), ("etcd-0.dev.internal",), ("10.48.0.10",), ("server", "client"))
times = st.integers(min_value=0, max_value=2_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


def authority(days: int) -> Authority:
    issued = issue_authority("test CA", timedelta(days=days), NOW)
    return Authority(issued.certificate, issued.private_key)


def life_of(issued: Issued) -> tuple[datetime, datetime]:
    certificate = x509.load_pem_x509_certificate(issued.certificate.encode())
    return certificate.not_valid_before_utc, certificate.not_valid_after_utc


def test_a_leaf_holds_from_just_before_now_to_the_end_of_its_life() -> None:
    issued = issue_leaf(MEMBER, authority(3_650), timedelta(days=365), NOW)
    assert life_of(issued) == (NOW - timedelta(minutes=5), NOW + timedelta(days=365))
    assert (issued.issued_at, issued.not_after) == ("2026-11-20T12:00:00+00:00", "2027-11-20T12:00:00+00:00")


def test_a_leaf_does_not_outlive_its_authority() -> None:
    issued = issue_leaf(MEMBER, authority(100), timedelta(days=365), NOW)
    assert life_of(issued)[1] == NOW + timedelta(days=100)
    assert issued.not_after == (NOW + timedelta(days=100)).isoformat()


def test_an_authority_that_has_ended_issues_nothing_and_says_what_to_do() -> None:
    with pytest.raises(AuthorityExpiredError, match=r"CN=test CA ended on 2027-02-28; raise its generation"):
        issue_leaf(MEMBER, authority(100), timedelta(days=365), NOW + timedelta(days=101))


def test_a_leaf_on_a_given_key_keeps_it_and_changes_its_serial_number() -> None:
    ca = authority(3_650)
    first = issue_leaf(MEMBER, ca, timedelta(days=365), NOW)
    second = issue_leaf(MEMBER, ca, timedelta(days=365), NOW, first.private_key)
    serials = [x509.load_pem_x509_certificate(item.certificate.encode()).serial_number for item in (first, second)]
    assert second.private_key == first.private_key
    assert serials[0] != serials[1]


def test_an_authority_issues_leaves_and_no_further_authority() -> None:
    certificate = x509.load_pem_x509_certificate(authority(3_650).certificate.encode())
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    assert (constraints.critical, constraints.value) == (True, x509.BasicConstraints(ca=True, path_length=0))
    assert (usage.critical, usage.value.key_cert_sign, usage.value.crl_sign) == (True, True, True)


@given(start=times, life=st.integers(min_value=3, max_value=4_000), passed=st.floats(min_value=0, max_value=2))
def test_renewal_is_due_when_less_than_a_third_remains(start: datetime, life: int, passed: float) -> None:
    end = start + timedelta(days=life)
    now = start + timedelta(days=life) * passed
    remaining = (end - now) / (end - start)
    if abs(remaining - 1 / 3) > 1e-6:
        assert renewal_due(start.isoformat(), end.isoformat(), now) == (remaining < 1 / 3)


def test_renewal_waits_for_the_last_third_to_begin() -> None:
    end = NOW + timedelta(days=3)
    assert not renewal_due(NOW.isoformat(), end.isoformat(), NOW + timedelta(days=2))
    assert renewal_due(NOW.isoformat(), end.isoformat(), NOW + timedelta(days=2, seconds=1))
