"""A real API server lets one run per cluster hold the Lease, with no more permissions than the rotation account has."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from api_client import MERGE, Api, eventually
from kubernetes import client, config

from components.manifests.owned import FLEET_NAMESPACE
from components.manifests.rotation import LEASE
from components.plan.access import PREFLIGHT_ACCOUNT, ROTATION_ACCOUNT
from lifecycle.rotation.run_lease import RunLease, RunLeaseHeldError, RunLeaseLostError, RunLeaseUnreachableError

PATH = f"/apis/coordination.k8s.io/v1/namespaces/{FLEET_NAMESPACE}/leases/{LEASE}"
SECONDS = 4
CLUSTER = "dev-0"


def _coordination(api: Api, kubeconfig: Path, account: str) -> client.CoordinationV1Api:
    """Return a client with the token of a service account, and without the administrator's certificate."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3_600}}
    reply = api.request("POST", f"/api/v1/namespaces/{FLEET_NAMESPACE}/serviceaccounts/{account}/token", request)
    assert reply.status == 201, reply.message
    settings = client.Configuration()
    config.load_kube_config(config_file=str(kubeconfig), client_configuration=settings)
    settings.cert_file = settings.key_file = None
    settings.api_key = {"authorization": f"Bearer {reply.body['status']['token']}"}
    settings.retries = False
    return client.CoordinationV1Api(client.ApiClient(settings))


@pytest.fixture
def account(api: Api, kubeconfig: Path) -> Iterator[client.CoordinationV1Api]:
    """Return the API as the rotation account calls it, while no run holds the Lease."""
    api.request("DELETE", PATH)
    coordination = _coordination(api, kubeconfig, ROTATION_ACCOUNT)
    yield coordination
    coordination.api_client.close()
    api.request("DELETE", PATH)


def _holder(api: Api) -> str:
    return str(api.request("GET", PATH).body["spec"]["holderIdentity"])


def test_a_second_run_is_refused_while_the_first_renews_and_may_begin_when_it_is_released(
    api: Api, account: client.CoordinationV1Api
) -> None:
    first = RunLease(account, CLUSTER, "ada", SECONDS)
    time.sleep(SECONDS + 1)
    first.check_held()
    with pytest.raises(RunLeaseHeldError, match="cluster dev-0: a run by ada is in progress") as raised:
        RunLease(account, CLUSTER, "grace", SECONDS)
    assert raised.value.holder == "ada"
    first.release()
    began = time.monotonic()
    second = RunLease(account, CLUSTER, "grace", SECONDS)
    assert time.monotonic() - began < SECONDS / 2
    assert _holder(api) == "grace"
    assert api.request("GET", PATH).body["spec"]["leaseTransitions"] == 1
    second.release()
    assert _holder(api) == ""


def test_the_lease_of_a_run_that_ended_without_release_is_taken_over_after_its_duration(
    api: Api, account: client.CoordinationV1Api
) -> None:
    # Its times are wrong by a day: only the candidate's own clock counts.
    spec = {"holderIdentity": "killed", "leaseDurationSeconds": SECONDS, "renewTime": "2020-01-01T00:00:00.000000Z"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE}, "spec": spec}
    api.make(PATH.rsplit("/", 1)[0], lease)
    began = time.monotonic()
    held = RunLease(account, CLUSTER, "ada", 60)
    assert SECONDS <= time.monotonic() - began < 60
    assert _holder(api) == "ada"
    held.release()


def test_of_two_runs_that_begin_together_one_holds_the_lease(api: Api, account: client.CoordinationV1Api) -> None:
    results: dict[str, RunLease | RunLeaseHeldError] = {}
    gate = threading.Barrier(2)

    def begin(identity: str) -> None:
        gate.wait()
        try:
            results[identity] = RunLease(account, CLUSTER, identity, SECONDS)
        except RunLeaseHeldError as error:
            results[identity] = error

    threads = [threading.Thread(target=begin, args=(identity,)) for identity in ("ada", "grace")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held = {identity: lease for identity, lease in results.items() if isinstance(lease, RunLease)}
    assert len(held) == 1
    assert len(results) == 2
    assert _holder(api) in held
    for lease in held.values():
        lease.release()


def test_a_run_stops_when_another_process_takes_its_lease(api: Api, account: client.CoordinationV1Api) -> None:
    lease = RunLease(account, CLUSTER, "ada", SECONDS)
    assert api.request("PATCH", PATH, {"spec": {"holderIdentity": "grace"}}, kind=MERGE).status == 200
    with pytest.raises(RunLeaseLostError, match="grace holds it"):
        eventually(lambda: _still_held(lease), "the loss of the lease")
    lease.release()
    assert _holder(api) == "grace"


def _still_held(lease: RunLease) -> bool:
    lease.check_held()
    return False


def test_a_run_stops_when_its_lease_is_deleted_and_does_not_create_it_again(api: Api, account: client.CoordinationV1Api) -> None:
    lease = RunLease(account, CLUSTER, "ada", SECONDS)
    api.remove(PATH)
    with pytest.raises(RunLeaseLostError, match="deleted"):
        eventually(lambda: _still_held(lease), "the loss of the lease")
    lease.release()
    assert api.request("GET", PATH).status == 404


def test_without_an_answer_a_run_stops_before_its_lease_expires(account: client.CoordinationV1Api) -> None:
    lease = RunLease(account, CLUSTER, "ada", SECONDS)
    began = time.monotonic()
    account.api_client.configuration.host = "https://127.0.0.1:9"
    with pytest.raises(RunLeaseLostError, match="was not renewed for 3 s, and it lasts 4 s"):
        eventually(lambda: _still_held(lease), "the loss of the lease")
    assert time.monotonic() - began < SECONDS
    lease.release()


def test_an_account_without_the_permission_is_refused_at_once(api: Api, kubeconfig: Path) -> None:
    coordination = _coordination(api, kubeconfig, PREFLIGHT_ACCOUNT)
    with pytest.raises(RunLeaseUnreachableError, match="HTTP 403 Forbidden"):
        RunLease(coordination, CLUSTER, "ada", SECONDS)
    coordination.api_client.close()
