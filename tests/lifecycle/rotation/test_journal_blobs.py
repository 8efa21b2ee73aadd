"""A journal in Azurite's append blobs has one writer by a lease, and contains each confirmed record once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from azure.storage.blob import BlobLeaseClient, ContainerClient
from blob_writer import LEASE_SECONDS, MOST_BLOCKS, PREFIX, container, opened
from journal_samples import STARTED, OwnLease, run_start, step, walk

sys.path.insert(0, str(Path(__file__).parents[2] / "playbooks"))
from blob_storage import CUT, LOST, Storage, blob_storage

from lifecycle.rotation.journal import read_journal
from lifecycle.rotation.journal_blobs import JournalBlobs
from lifecycle.rotation.journal_errors import (
    JournalCorruptError,
    JournalExistsError,
    JournalHeldError,
    JournalLeaseLostError,
    JournalMissingError,
    JournalWriteError,
)
from lifecycle.rotation.journal_writer import JournalWriter
from lifecycle.rotation.model import Action, ActionKind, Transition

KILLS = 12
ROOT = Path(__file__).parents[3]
ACTIONS = (Action(ActionKind.CORDON, ("gpu-0000",), "must not start"),)
pytestmark = pytest.mark.xdist_group("journal blobs")


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with blob_storage(tmp_path_factory.mktemp("storage"), "journals") as made:
        yield made


@pytest.fixture
def client(storage: Storage) -> Iterator[ContainerClient]:
    """Return a client of a container without blobs."""
    storage.faults.clear()
    with container(storage.url, str(storage.authority), storage.token()) as made:
        for name in list(made.list_blob_names()):
            BlobLeaseClient(made.get_blob_client(name)).break_lease(0) if leased(made, name) else None
            made.delete_blob(name)
        yield made


def leased(client: ContainerClient, name: str) -> bool:
    return client.get_blob_client(name).get_blob_properties().lease.status == "locked"


def blobs(client: ContainerClient) -> list[str]:
    return sorted(client.list_blob_names())


def expire(client: ContainerClient) -> None:
    """End every lease at once, as its expiry does after LEASE_SECONDS."""
    for name in blobs(client):
        if leased(client, name):
            BlobLeaseClient(client.get_blob_client(name)).break_lease(0)


def transitions_in(client: ContainerClient) -> list[Transition]:
    with closing(opened(client)) as store:
        return read_journal(store).transitions


def new_run(client: ContainerClient) -> JournalWriter:
    return JournalWriter.start(JournalBlobs.create(client, PREFIX, LEASE_SECONDS, MOST_BLOCKS), OwnLease(), run_start())


def never(action: Action) -> None:
    raise AssertionError(action)


def write(writer: JournalWriter, count: int) -> None:
    for _ in range(count):
        number = len(writer.journal.transitions)
        writer.carry_out(step(walk(number)), STARTED + number, never)


@contextmanager
def another_writer(storage: Storage) -> Iterator[subprocess.Popen[str]]:
    arguments = (storage.url, str(storage.authority), storage.token())
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = (sys.executable, Path(__file__).with_name("blob_writer.py"), *arguments)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def confirmed(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]


def test_a_journal_continues_in_a_new_blob_when_one_is_full(client: ContainerClient) -> None:
    writer = new_run(client)
    write(writer, 11)
    writer.close()
    assert blobs(client) == [f"{PREFIX}/{number:06d}.jsonl" for number in (1, 2, 3)]
    counts = [client.get_blob_client(name).get_blob_properties().append_blob_committed_block_count for name in blobs(client)]
    assert counts == [4, 4, 4]
    again = JournalWriter.proceed(opened(client), OwnLease(), "dev-0")
    assert again.journal.transitions == [walk(number) for number in range(11)]
    write(again, 2)
    again.close()
    assert transitions_in(client) == [walk(number) for number in range(13)]
    assert len(blobs(client)) == 4


def test_an_append_whose_answer_is_lost_is_not_doubled(client: ContainerClient, storage: Storage) -> None:
    writer = new_run(client)
    # The second record is appended at the third try, the rollover behind it loses an answer of each of its requests.
    storage.faults.update(
        {"PUT appendblock": [CUT, 503, LOST, None, None, LOST], "PUT metadata": [LOST], "PUT lease": [LOST, None], "PUT ": [LOST]}
    )
    write(writer, 6)
    writer.close()
    assert not any(planned and planned != [None] for planned in storage.faults.values()), "every fault was used"
    assert transitions_in(client) == [walk(number) for number in range(6)]


def test_a_writer_killed_at_random_points_loses_no_confirmed_step_and_the_next_one_continues(
    client: ContainerClient, storage: Storage
) -> None:
    new_run(client).close()
    generator = random.Random(11)  # noqa: S311 (it chooses moments)
    known = 0
    for _ in range(KILLS):
        with another_writer(storage) as process:
            time.sleep(generator.uniform(0, 0.6))
            process.send_signal(signal.SIGKILL)
            numbers = confirmed(process)
        time.sleep(0.3)  # a request that was on its way arrives
        expire(client)
        transitions = transitions_in(client)
        assert numbers == list(range(known, known + len(numbers)))
        assert 0 <= len(transitions) - (known + len(numbers)) <= 1
        assert transitions == [walk(number) for number in range(len(transitions))]
        known = len(transitions)
    assert len(blobs(client)) > 2, "the writers continued in new blobs"


def test_a_paused_writer_acts_no_more_after_another_took_over_its_expired_lease(client: ContainerClient, storage: Storage) -> None:
    new_run(client).close()
    with another_writer(storage) as process:
        time.sleep(0.5)
        process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(JournalHeldError, match="another process writes this journal"):
            opened(client, wait_seconds=1)
        writer = JournalWriter.proceed(opened(client, wait_seconds=2 * LEASE_SECONDS), OwnLease(), "dev-0")
        assert time.monotonic() - began < LEASE_SECONDS + 5
        before = len(writer.journal.transitions)
        write(writer, 3)
        process.send_signal(signal.SIGCONT)
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
    assert lines[-1].startswith("JournalLeaseLostError: "), lines[-1]
    # The process stops at any point: it may report a record that it had written before the pause, and no other.
    assert all(int(line) < before for line in lines[:-1])
    write(writer, 3)
    writer.close()
    assert transitions_in(client) == [walk(number) for number in range(before + 6)]


def test_a_writer_between_two_blobs_keeps_its_journal(client: ContainerClient) -> None:
    """A writer creates the next blob before it leases it; nobody else may lease that blob in between."""
    writer = new_run(client)
    write(writer, 3)
    client.get_blob_client(f"{PREFIX}/000002.jsonl").create_append_blob()
    with pytest.raises(JournalHeldError, match="another process writes this journal"):
        opened(client, wait_seconds=0)
    write(writer, 3)
    writer.close()
    assert transitions_in(client) == [walk(number) for number in range(6)]


def test_azure_rejects_the_request_of_a_writer_that_does_not_know_that_its_lease_is_lost(client: ContainerClient) -> None:
    former = new_run(client)
    write(former, 1)
    expire(client)
    latter = JournalWriter.proceed(opened(client), OwnLease(), "dev-0")
    with pytest.raises(JournalLeaseLostError, match="it stops before its next action"):
        former.carry_out(step(walk(1), actions=ACTIONS), STARTED, never)
    write(latter, 1)
    latter.close()
    former.close()
    assert transitions_in(client) == [walk(0), walk(1)]


def test_the_lease_is_renewed_for_longer_than_it_lasts(client: ContainerClient) -> None:
    writer = new_run(client)
    time.sleep(LEASE_SECONDS + 2)
    with pytest.raises(JournalHeldError):
        opened(client, wait_seconds=0)
    write(writer, 1)
    writer.close()


def test_without_answers_the_writer_stops_before_its_lease_expires(client: ContainerClient, storage: Storage) -> None:
    writer = new_run(client)
    began = time.monotonic()
    storage.faults.update({kind: [CUT] * 1000 for kind in ("PUT appendblock", "PUT lease")})
    with pytest.raises(JournalLeaseLostError, match="was not renewed"):
        writer.carry_out(step(walk(0), actions=ACTIONS), STARTED, never)
    assert time.monotonic() - began < LEASE_SECONDS
    sent = len(storage.seen)
    with pytest.raises(JournalLeaseLostError):
        writer.carry_out(step(actions=ACTIONS), STARTED, never)
    assert len(storage.seen) == sent, "without the lease nothing is sent"
    storage.faults.clear()
    writer.close()


def test_a_missing_blob_an_existing_journal_and_a_refusal_are_reported(client: ContainerClient, storage: Storage) -> None:
    with pytest.raises(JournalMissingError, match="start a new run"):
        opened(client)
    writer = new_run(client)
    with pytest.raises(JournalExistsError, match="never overwritten"):
        new_run(client)
    storage.faults["PUT appendblock"] = [403]
    with pytest.raises(JournalWriteError, match="AuthorizationPermissionMismatch"):
        writer.carry_out(step(walk(0), actions=ACTIONS), STARTED, never)
    writer.close()
    writer = JournalWriter.proceed(opened(client), OwnLease(), "dev-0")
    write(writer, 5)
    writer.close()
    client.delete_blob(f"{PREFIX}/000001.jsonl")
    with pytest.raises(JournalCorruptError, match=r"000001.jsonl: the journal: the blob is missing. Nothing was started. Restore the blob"):
        transitions_in(client)
