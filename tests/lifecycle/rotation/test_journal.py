"""A journal returns exactly what was written, and every damage to it is reported before anything starts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_samples import STARTED, OwnLease, run_start, step, walk
from jsonschema import Draft202012Validator

from components.spec.tenancy import Replacement
from lifecycle.rotation.journal import read_journal
from lifecycle.rotation.journal_errors import JournalCorruptError, JournalEmptyError, JournalOrderError
from lifecycle.rotation.journal_file import JournalFile
from lifecycle.rotation.journal_records import RecordError, StepRecord, columns, decode, encode, record_schema, transitions_of
from lifecycle.rotation.journal_writer import JournalWriter
from lifecycle.rotation.model import Action, ActionKind, NodeState, Transition

SCHEMA = Path(__file__).parents[3] / "lifecycle" / "rotation" / "journal.schema.json"


def written(path: Path) -> bytes:
    """Write a journal with a record of every kind to a new file, and return its bytes."""
    store = JournalFile.create(path)
    writer = JournalWriter.start(store, OwnLease(), run_start())
    gang = Transition(
        "gpu-0002", NodeState.CORDONED, STARTED + 3.5, "starts", until=STARTED + 99, gangs=("vision/train", "vision/eval"), actor="ada"
    )
    writer.carry_out(step(walk(0), gang, stopped="2 of 3 nodes failed"), STARTED, _no_action)
    writer.resume(STARTED + 5, "ada", "bad disk replaced")
    writer.carry_out(
        step(
            Transition("gpu-0001", NodeState.BLOCKED, STARTED + 6, "no budget"), Transition("gpu-0003", NodeState.READY, STARTED + 6, "was")
        ),
        STARTED + 6,
        _no_action,
    )
    writer.stop(STARTED + 7, "ada", "release")
    writer.retry(STARTED + 8, "ada", [Transition("gpu-0001", NodeState.PENDING, STARTED + 8, "retried", actor="ada")])
    drained = Transition("gpu-0000", NodeState.DRAINING, STARTED + 9, "evicts", evicting=True)
    replaced = Transition("gpu-0000", NodeState.DRAINED, STARTED + 9, "drained", method=Replacement.REPLACE, attempt=2)
    writer.carry_out(step(drained, replaced, finished=True), STARTED + 9, _no_action)
    writer.close()
    return path.read_bytes()


def _no_action(_: Action) -> None:
    raise AssertionError("the step has no action")


def test_reading_returns_what_was_written(tmp_path: Path) -> None:
    data = written(tmp_path / "run.jsonl")
    journal = read_journal(JournalFile.open(tmp_path / "run.jsonl"))
    assert journal.start == run_start()
    assert [(one.node, one.to, one.at, one.actor) for one in journal.transitions] == [
        ("gpu-0000", NodeState.CORDONED, STARTED, "rotation"),
        ("gpu-0002", NodeState.CORDONED, STARTED + 3.5, "ada"),
        ("gpu-0001", NodeState.BLOCKED, STARTED + 6, "rotation"),
        ("gpu-0003", NodeState.READY, STARTED + 6, "rotation"),
        ("gpu-0001", NodeState.PENDING, STARTED + 8, "ada"),
        ("gpu-0000", NodeState.DRAINING, STARTED + 9, "rotation"),
        ("gpu-0000", NodeState.DRAINED, STARTED + 9, "rotation"),
    ]
    assert journal.transitions[1].gangs == ("vision/train", "vision/eval")
    assert journal.transitions[1].until == STARTED + 99
    assert journal.transitions[5].evicting
    assert (journal.transitions[6].method, journal.transitions[6].attempt) == (Replacement.REPLACE, 2)
    assert (journal.stopped, journal.resumed_after, journal.finished) == ("release", 2, True)
    assert (journal.records, journal.length, journal.dropped) == (9, len(data), 0)


def test_the_published_schema_is_that_of_the_code_and_accepts_every_kind_of_record(tmp_path: Path) -> None:
    text = json.dumps(record_schema(), indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("GPUFLEET_UPDATE_GOLDEN") == "1":
        SCHEMA.write_text(text, encoding="utf-8")
    assert SCHEMA.read_text(encoding="utf-8") == text, "GPUFLEET_UPDATE_GOLDEN=1 pytest writes the schema; read the diff for its version"
    validator = Draft202012Validator(record_schema())
    lines = [json.loads(line) for line in written(tmp_path / "run.jsonl").splitlines()]
    assert {line["kind"] for line in lines} == {"run", "step", "stop", "resume", "retry", "finish"}
    for line in lines:
        validator.validate(line)
    assert not validator.is_valid(lines[1] | {"to": ["lost"]})


@given(st.data())
def test_columns_return_their_transitions(data: st.DataObject) -> None:
    names = [f"n{number}" for number in range(5)]
    times = st.floats(0, 4e9)
    one = st.builds(
        Transition,
        node=st.sampled_from(names),
        to=st.sampled_from(NodeState),
        at=times,
        cause=st.text(),
        actor=st.text(),
        until=st.none() | times,
        attempt=st.integers(1, 99),
        evicting=st.booleans(),
        method=st.none() | st.sampled_from(Replacement),
        gangs=st.lists(st.text(), max_size=3).map(tuple),
    )
    transitions = data.draw(st.lists(one, min_size=1, max_size=6))
    record = StepRecord(seq=3, **columns(transitions, data.draw(times), {name: number for number, name in enumerate(names)}))
    line = encode(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    read = decode(line[:-1])
    assert isinstance(read, StepRecord)
    assert transitions_of(read, names) == transitions


def test_a_journal_cut_at_any_byte_continues_after_its_last_complete_record(tmp_path: Path) -> None:
    data = written(tmp_path / "whole.jsonl")
    path = tmp_path / "cut.jsonl"
    first = data.index(b"\n") + 1
    for length in range(len(data)):
        path.write_bytes(data[:length])
        store = JournalFile.open(path)
        complete = data.rfind(b"\n", 0, length) + 1
        if length < first:
            with pytest.raises(JournalEmptyError, match="no complete record"):
                read_journal(store)
            if length % 100 == 0:
                JournalWriter.start(store, OwnLease(), run_start())
                assert path.read_bytes() == data[:first]
        else:
            journal = read_journal(store)
            assert (journal.length, journal.dropped) == (complete, length - complete)
            if length % 20 == 0:
                JournalWriter.proceed(store, OwnLease(), "dev-0").stop(STARTED, "ada", "lunch")
                assert path.read_bytes()[:complete] == data[:complete]
                assert read_journal(store).stopped == "lunch"
        store.close()


def test_blocks_of_zeros_that_a_power_failure_leaves_at_the_end_are_dropped(tmp_path: Path) -> None:
    data = written(tmp_path / "run.jsonl")
    last = data.rindex(b"\n", 0, -1) + 1
    for tail in (bytes(4096), bytes(len(data) - last - 9) + data[-9:]):
        (tmp_path / "run.jsonl").write_bytes(data[:last] + tail)
        store = JournalFile.open(tmp_path / "run.jsonl")
        assert read_journal(store).dropped == len(tail)
        store.close()


def _fault(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    store = JournalFile.open(path)
    try:
        with pytest.raises(JournalCorruptError) as raised:
            JournalWriter.proceed(store, OwnLease(), "dev-0")
    finally:
        store.close()
    assert path.read_bytes() == data, "a journal with a fault must not be changed"
    return str(raised.value).removeprefix(str(path))


def test_every_changed_byte_of_a_complete_record_is_found(tmp_path: Path) -> None:
    data = written(tmp_path / "run.jsonl")
    path = tmp_path / "changed.jsonl"
    starts = [0, *(at + 1 for at, byte in enumerate(data[:-1]) if byte == 10)]
    for at in range(0, len(data) - 1, 7):
        if data[at] == 10:
            continue
        fault = _fault(path, data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        record = max(number for number, start in enumerate(starts) if start <= at)
        assert fault.startswith(f", byte {starts[record]}: record {record} of the journal: "), fault
        assert "Nothing was started" in fault


def _line(data: bytes, number: int, **changes: object) -> bytes:
    """Return a line of a journal with changed fields and the right checksum."""
    record = decode(data.splitlines()[number])
    return encode(record.model_copy(update=changes))


def test_faults_that_a_checksum_does_not_show_are_reported_with_place_reason_and_remedy(tmp_path: Path, golden: object) -> None:
    data = written(tmp_path / "run.jsonl")
    lines = data.splitlines(keepends=True)
    damaged = {
        "a record is missing": [*lines[:3], *lines[4:]],
        "a record is repeated": [*lines[:3], lines[2], *lines[3:]],
        "the first record is missing": lines[1:],
        "a later schema": [_line(data, 0, schema_version=9), *lines[1:]],
        "an unknown node": [lines[0], _line(data, 1, nodes=[0, 4]), *lines[2:]],
        "an impossible transition": [lines[0], _line(data, 1, to=[NodeState.CORDONED, NodeState.JOINING]), *lines[2:]],
        "lists of different lengths": [lines[0], _line(data, 1, cause=["one"]), *lines[2:]],
        "a retry without a failure": [*lines[:6], _line(data, 6, nodes=[0]), *lines[7:]],
        "a second run": [*lines[:2], _line(data, 0, seq=2), *lines[2:]],
        "a record after the end": [*lines, _line(data, 2, seq=9)],
        "a node twice": [_line(data, 0, nodes=decode(lines[0][:-1]).nodes[:1] * 2), *lines[1:]],  # type: ignore[union-attr]
        "an empty line": [lines[0], b"\n", *lines[1:]],
        "another cluster": [_line(data, 0, cluster="other-1"), *lines[1:]],
    }
    faults = [f"{name}{_fault(tmp_path / 'damaged.jsonl', b''.join(parts))}" for name, parts in damaged.items()]
    golden("lifecycle/journal-faults.txt", "\n".join(faults) + "\n")  # type: ignore[operator]


def test_a_record_with_a_wrong_type_or_an_unknown_field_is_rejected(tmp_path: Path) -> None:
    data = written(tmp_path / "run.jsonl").splitlines()
    for number, text in ((1, b'"nodes":["0",2]'), (1, b'"nodes":[-1,2]'), (1, b'"nodes":[0,2],"speed":1')):
        body = data[number].replace(b'"nodes":[0,2]', text)
        with pytest.raises(RecordError, match="checksum"):
            decode(body)
        sealed = _sealed(body)
        with pytest.raises(RecordError, match="the schema rejects it"):
            decode(sealed)


def _sealed(line: bytes) -> bytes:
    """Return a line with the checksum of its content."""
    try:
        decode(line)
    except RecordError as error:
        return line[:8] + str(error)[-8:].encode() + line[16:]
    raise AssertionError("the line was valid")


def test_a_step_is_durable_before_its_actions_and_without_a_lease_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    lease = OwnLease()
    writer = JournalWriter.start(JournalFile.create(path), lease, run_start())
    seen: list[int] = []
    actions = (Action(ActionKind.CORDON, ("gpu-0000",), "one"), Action(ActionKind.CORDON, ("gpu-0002",), "two"))

    def execute(_: Action) -> None:
        seen.append(len(path.read_bytes().splitlines()))
        lease.lost = JournalOrderError("the lease went to another run")

    with pytest.raises(JournalOrderError, match="another run"):
        writer.carry_out(step(walk(0), actions=actions), STARTED, execute)
    assert seen == [2], "the first action sees its record, and the second is not carried out without the lease"
    before = path.read_bytes()
    with pytest.raises(JournalOrderError, match="another run"):
        writer.carry_out(step(walk(1)), STARTED, execute)
    assert path.read_bytes() == before


def test_repeated_actions_are_carried_out_without_a_new_record(tmp_path: Path) -> None:
    writer = JournalWriter.start(JournalFile.create(tmp_path / "run.jsonl"), OwnLease(), run_start())
    done: list[str] = []
    writer.carry_out(step(actions=(Action(ActionKind.CORDON, ("gpu-0000",), "again"),)), STARTED, lambda one: done.append(one.reason))
    assert done == ["again"]
    assert len((tmp_path / "run.jsonl").read_bytes().splitlines()) == 1


def test_a_transition_that_no_reader_would_accept_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for wrong in (Transition("gpu-0000", NodeState.JOINING, STARTED, "jumps"), Transition("gpu-9999", NodeState.CORDONED, STARTED, "who")):
        path.unlink(missing_ok=True)
        writer = JournalWriter.start(JournalFile.create(path), OwnLease(), run_start())
        before = path.read_bytes()
        with pytest.raises(JournalOrderError, match=wrong.node):
            writer.carry_out(step(wrong, actions=(Action(ActionKind.CORDON, (wrong.node,), ""),)), STARTED, _no_action)
        assert path.read_bytes() == before
        writer.close()
