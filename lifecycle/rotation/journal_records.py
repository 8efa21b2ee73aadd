"""Records of a journal and their encoding: one JSON object per line, with a checksum and a sequence number.

A line is `{"crc":"<8 hexadecimal digits>",<rest>` and a line feed. The checksum is the CRC-32 of <rest> without the line feed, as in zlib
(https://www.rfc-editor.org/rfc/rfc1952#section-8), so that a reader verifies a line before it parses it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, repeat
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from components.spec.tenancy import Replacement
from lifecycle.rotation.model import ROTATION, Load, NodeState, RunNode, Task, Transition
from lifecycle.rotation.policy import Policy

SCHEMA_VERSION = 1
"""Version of this schema. A change that an older reader would misread increases it; a new optional field of `run` does not."""
_PREFIX = b'{"crc":"'
_BODY_AT = len(_PREFIX) + 10
Time = Annotated[float, Field(description="Seconds since 1970, UTC.")]
NodeIndex = Annotated[int, Field(ge=0, description="Position of the node in the run record's list of nodes, from 0.")]


class _Record(BaseModel):
    """Fields of every record."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    crc: str = Field(default="00000000", pattern="^[0-9a-f]{8}$", description="CRC-32 of the rest of the line, after this field's comma.")
    seq: int = Field(ge=0, description="Number of the record, from 0, without gaps.")


class Target(BaseModel):
    """Image and boot files that the nodes of a pool must have."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    image: str = Field(description="Pinned image, name@version.")
    boot_digest: str = Field(description="Digest of the pool's boot files, as its nodes report it: 32 hexadecimal digits.")


class NodeGroup(BaseModel):
    """Consecutive nodes of the run's list with the same scale set, pool, task and reason."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    scale_set: str
    pool: str
    task: Task = Field(description="Purpose for which the nodes are drained.")
    reason: str = Field(description="Reason for which the nodes were selected.")
    names: tuple[str, ...] = Field(min_length=1, description="Names of the nodes when they were selected.")


class RunRecord(_Record):
    """First record: what the run does, and on which nodes."""

    kind: Literal["run"] = "run"
    schema_version: int = Field(default=SCHEMA_VERSION, description="Version of this schema.")
    run_id: str
    cluster: str
    region: str
    at: Time
    actor: str = Field(description="Person or schedule that started the run.")
    targets: dict[str, Target] = Field(description="Image and boot files by pool.")
    policy: Policy = Field(
        description="Policy of the run: times in seconds, counts in machines; keys of deadlines are loads, 0 empty to 4 high."
    )
    nodes: tuple[NodeGroup, ...] = Field(description="Nodes of the run; their positions, over all groups, are the node indexes.")


class _Transitions(_Record):
    """Transitions as columns: position i of every list belongs to nodes[i]. An absent list has its default at every position."""

    at: Time
    nodes: list[NodeIndex] = Field(min_length=1, description="Nodes, in the order of their transitions.")
    to: list[NodeState] = Field(description="State that the node enters.")
    cause: list[str] = Field(description="Cause of the transition.")
    times: list[Time] | None = Field(default=None, description="Times of the transitions; default: the record's time.")
    actors: list[str] | None = Field(default=None, description=f"Actors of the transitions; default: {ROTATION}.")
    until: list[float | None] | None = Field(
        default=None, description="End of the wait in the state, in seconds since 1970; default: null."
    )
    attempt: list[int] | None = Field(default=None, description="Number of the attempt; default: 1.")
    evicting: list[bool] | None = Field(default=None, description="Of draining: evictions have begun; default: false.")
    method: list[Replacement | None] | None = Field(default=None, description="Method of replacement; default: null.")
    gangs: list[tuple[str, ...]] | None = Field(default=None, description="Gangs that share the start; default: none.")


class StepRecord(_Transitions):
    """All transitions of one step, written before the step's actions begin."""

    kind: Literal["step"] = "step"


class RetryRecord(_Transitions):
    """Failed or blocked nodes that an operator put back into the run."""

    kind: Literal["retry"] = "retry"
    actor: str


class StopRecord(_Record):
    """From here the run starts no more nodes; nodes in rotation go on."""

    kind: Literal["stop"] = "stop"
    at: Time
    actor: str
    reason: str


class ResumeRecord(_Record):
    """An operator continued the run, after a stop or after its process ended."""

    kind: Literal["resume"] = "resume"
    at: Time
    actor: str
    reason: str = ""


class FinishRecord(_Record):
    """Every node has ended. Only a retry may follow."""

    kind: Literal["finish"] = "finish"
    at: Time


Record = RunRecord | StepRecord | RetryRecord | StopRecord | ResumeRecord | FinishRecord
_ANY: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])


class RecordError(ValueError):
    """A line that is not a record; the message is the reason."""


def record_schema() -> dict[str, Any]:
    """Return the JSON schema of a line."""
    schema = _ANY.json_schema(mode="serialization")
    # The keys of a JSON object are strings, also those of numbers.
    schema["$defs"]["Policy"]["properties"]["deadlines"]["propertyNames"] = {"enum": [str(load.value) for load in Load]}
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Line of the journal of a rotation"}
    return title | {"description": f"Schema version {SCHEMA_VERSION}; see docs/rotation-journal.md."} | schema


def encode(record: Record) -> bytes:
    """Return the line of a record, with its line feed."""
    body = record.model_dump_json(exclude={"crc"}, exclude_none=True).encode()[1:]
    return b'%s%08x",%s\n' % (_PREFIX, zlib.crc32(body), body)


def decode(line: bytes) -> Record:
    """Return the record of a line without its line feed; RecordError for a wrong checksum or a record that the schema rejects."""
    if not line.startswith(_PREFIX) or line[_BODY_AT - 2 : _BODY_AT] != b'",':
        raise RecordError("the line does not begin with a checksum")
    found, written = b"%08x" % zlib.crc32(memoryview(line)[_BODY_AT:]), line[len(_PREFIX) : _BODY_AT - 2]
    if found != written:
        raise RecordError(f"its checksum is {written.decode(errors='replace')}, but that of its content is {found.decode()}")
    try:
        return _ANY.validate_json(line)
    except ValueError as error:
        raise RecordError(f"the schema rejects it ({_first_line(error)})") from None


def _first_line(error: ValueError) -> str:
    """Return the first fault of a pydantic error on one line: the field and the reason."""
    lines = str(error).splitlines()
    return ": ".join(line.strip().split(" [type=")[0] for line in lines[1:3]) or lines[0]


def node_groups(nodes: Iterable[RunNode]) -> tuple[NodeGroup, ...]:
    """Return nodes in their order, joined where consecutive ones differ only in their names."""
    return tuple(
        NodeGroup(scale_set=scale_set, pool=pool, task=task, reason=reason, names=tuple(node.name for node in same))
        for (scale_set, pool, task, reason), same in groupby(nodes, key=lambda node: (node.scale_set, node.pool, node.task, node.reason))
    )


def run_nodes(record: RunRecord) -> tuple[RunNode, ...]:
    """Return the nodes of a run in the order of their indexes."""
    return tuple(
        RunNode(name=name, scale_set=group.scale_set, pool=group.pool, reason=group.reason, task=group.task)
        for group in record.nodes
        for name in group.names
    )


def columns(transitions: Sequence[Transition], at: float, index: Mapping[str, int]) -> dict[str, Any]:
    """Return the fields of a record with these transitions; index contains the position of each node of the run."""
    optional: dict[str, tuple[list[Any], Any]] = {
        "times": ([one.at for one in transitions], at),
        "actors": ([one.actor for one in transitions], ROTATION),
        "until": ([one.until for one in transitions], None),
        "attempt": ([one.attempt for one in transitions], 1),
        "evicting": ([one.evicting for one in transitions], False),
        "method": ([one.method for one in transitions], None),
        "gangs": ([one.gangs for one in transitions], ()),
    }
    return {
        "at": at,
        "nodes": [index[one.node] for one in transitions],
        "to": [one.to for one in transitions],
        "cause": [one.cause for one in transitions],
    } | {name: values for name, (values, default) in optional.items() if any(value != default for value in values)}


def transitions_of(record: StepRecord | RetryRecord, names: Sequence[str]) -> list[Transition]:
    """Return the transitions of a record; RecordError if its lists differ in length or a node is unknown."""
    count = len(record.nodes)
    lists = (
        record.to,
        record.cause,
        record.times,
        record.actors,
        record.until,
        record.attempt,
        record.evicting,
        record.method,
        record.gangs,
    )
    if any(values is not None and len(values) != count for values in lists):
        raise RecordError(f"its lists differ in length from the {count} nodes")
    if max(record.nodes) >= len(names):
        raise RecordError(f"it has node {max(record.nodes)}, but the run has {len(names)} nodes, numbered from 0")
    return [
        Transition(names[node], to, at, cause, actor, until, attempt, evicting, method, gangs)
        for node, to, cause, at, actor, until, attempt, evicting, method, gangs in zip(
            record.nodes,
            record.to,
            record.cause,
            record.times or repeat(record.at),
            record.actors or repeat(ROTATION),
            record.until or repeat(None),
            record.attempt or repeat(1),
            record.evicting or repeat(False),
            record.method or repeat(None),
            record.gangs or repeat(()),
            strict=False,  # the repeated defaults have no end; the lengths of the lists are equal
        )
    ]
