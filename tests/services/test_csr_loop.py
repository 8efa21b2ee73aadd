"""A fleet of real kubelets is served within minutes, with few questions to Azure, also while others send thousands of bogus requests."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import pytest
import signing_requests as made
from cryptography import x509
from first_state import checks

from services.csr_approver.approval_loop import ApprovalLoop, RequestChangedError, ServiceUnreachableError
from services.csr_approver.verdicts import Instance, SigningRequest


@dataclass
class Fleet:
    """Scale sets with machines, as Azure would list them; answers fail while failing is set. Counts the questions."""

    sets: dict[str, tuple[Instance, ...]]
    failing: ServiceUnreachableError | None = None
    questions: list[str] = field(default_factory=list)

    def scale_sets(self) -> frozenset[str]:
        self.questions.append("*")
        if self.failing:
            raise self.failing
        return frozenset(self.sets)

    def instances(self, scale_set: str) -> tuple[Instance, ...]:
        self.questions.append(scale_set)
        if self.failing:
            raise self.failing
        return self.sets[scale_set]


@dataclass
class Book:
    """Decisions by request; writing fails with the errors that are put in, one per attempt."""

    approved: dict[str, str] = field(default_factory=dict)
    denied: dict[str, str] = field(default_factory=dict)
    errors: list[Exception] = field(default_factory=list)

    def approve(self, request: SigningRequest, reason: str) -> None:
        self._fail()
        self.approved[request.name] = reason

    def deny(self, request: SigningRequest, reason: str) -> None:
        self._fail()
        self.denied[request.name] = reason

    def _fail(self) -> None:
        if self.errors:
            raise self.errors.pop(0)


def fleet(sets: int, machines: int) -> Fleet:
    """Machines of several scale sets; machine m of set s has address 10.s.0.m."""
    return Fleet(
        {
            f"frontier-h100-{s:03d}": tuple(
                Instance(f"frontier-h100-{s:03d}-{m:06d}", frozenset({f"10.{s}.0.{m}"}), "succeeded") for m in range(machines)
            )
            for s in range(sets)
        }
    )


def kubelet(machine: Instance, seen: float = 0.0, addresses: frozenset[str] | None = None) -> SigningRequest:
    """Return a request of a machine's kubelet."""
    names = (x509.DNSName(machine.name), *(made.address(text) for text in addresses or machine.addresses))
    text = made.pem(names, made.subject(f"system:node:{machine.name}"))
    return made.request(text, node=machine.name, name=f"csr-{machine.name}", seen=seen)


def run(approver: ApprovalLoop, until: float, now: float = 0.0) -> float:
    """Let virtual time pass; returns when it ended."""
    while now < until:
        now += approver.step(now) or 0.001
    return now


def test_a_joining_fleet_is_approved_with_one_question_per_scale_set() -> None:
    azure, book = fleet(sets=20, machines=10), Book()
    approver = ApprovalLoop("frontier-", azure, book, checks())
    for machines in azure.sets.values():
        for machine in machines:
            approver.offer(kubelet(machine))
    run(approver, until=60.0)
    assert len(book.approved) == 200
    assert book.denied == {}
    assert sorted(azure.questions) == ["*", *sorted(azure.sets)]
    assert len(approver.backlog) == 0


def test_a_flood_of_bogus_requests_neither_starves_a_real_one_nor_multiplies_the_questions() -> None:
    azure, book = fleet(sets=3, machines=2), Book()
    approver = ApprovalLoop("frontier-", azure, book, checks())
    real = azure.sets["frontier-h100-001"][0]
    invented = [Instance(f"frontier-h100-{number % 3:03d}-x{number:05d}", frozenset({"10.9.9.9"}), "") for number in range(300)]
    elsewhere = [Instance(f"frontier-x{number:04d}-000-000000", frozenset({"10.9.9.9"}), "") for number in range(300)]
    for number, machine in enumerate((*invented, *elsewhere)):
        approver.offer(kubelet(machine, seen=number / 100))
        approver.offer(made.request(b"nonsense", name=f"nonsense-{number}", username=f"system:node:{machine.name}", seen=number / 100))
    approver.offer(kubelet(real, seen=6.0))
    run(approver, until=60.0)
    assert set(book.approved) == {f"csr-{real.name}"}
    assert len([name for name in book.denied if name.startswith("nonsense-")]) == 600
    run(approver, until=600.0, now=60.0)
    assert len(book.denied) == 1_200
    assert len(azure.questions) <= 4 * (600 / 15 + 1)
    assert set(azure.questions) <= {"*", *azure.sets}


def test_while_azure_is_throttled_everything_waits_and_then_goes_on() -> None:
    azure, book = fleet(sets=1, machines=3), Book()
    azure.failing = ServiceUnreachableError("HTTP 429", 120.0)
    approver = ApprovalLoop("frontier-", azure, book, checks())
    for machine in azure.sets["frontier-h100-000"]:
        approver.offer(kubelet(machine))
    now = run(approver, until=119.0)
    assert (book.approved, book.denied, azure.questions) == ({}, {}, ["*"])
    azure.failing = None
    run(approver, until=now + 120.0, now=now)
    assert len(book.approved) == 3


def test_an_address_of_a_neighbour_is_denied_once_azure_has_answered_after_the_request() -> None:
    azure, book = fleet(sets=1, machines=2), Book()
    thief, victim = azure.sets["frontier-h100-000"]
    approver = ApprovalLoop("frontier-", azure, book, checks())
    approver.offer(kubelet(thief, addresses=victim.addresses))
    run(approver, until=10.0)
    assert book.approved == {}
    assert "is not one of" in book.denied[f"csr-{thief.name}"]


def test_a_machine_that_azure_lists_late_is_approved_when_it_does() -> None:
    azure, book = fleet(sets=1, machines=2), Book()
    late = azure.sets["frontier-h100-000"][1]
    azure.sets["frontier-h100-000"] = azure.sets["frontier-h100-000"][:1]
    approver = ApprovalLoop("frontier-", azure, book, checks())
    approver.offer(kubelet(late))
    now = run(approver, until=100.0)
    assert (book.approved, book.denied) == ({}, {})
    azure.sets["frontier-h100-000"] += (late,)
    run(approver, until=now + 61.0, now=now)
    assert set(book.approved) == {f"csr-{late.name}"}


def test_a_decision_that_could_not_be_written_is_written_again() -> None:
    azure, book = fleet(sets=1, machines=1), Book(errors=[ServiceUnreachableError("HTTP 500"), ServiceUnreachableError("timeout")])
    approver = ApprovalLoop("frontier-", azure, book, checks())
    approver.offer(kubelet(azure.sets["frontier-h100-000"][0]))
    run(approver, until=30.0)
    assert len(book.approved) == 1


def test_a_request_that_someone_else_decided_is_let_go() -> None:
    azure, book = fleet(sets=1, machines=1), Book(errors=[RequestChangedError("HTTP 409")])
    approver = ApprovalLoop("frontier-", azure, book, checks())
    approver.offer(kubelet(azure.sets["frontier-h100-000"][0]))
    run(approver, until=30.0)
    assert book.approved == {}
    assert len(approver.backlog) == 0


def test_each_decision_is_one_line_that_a_sender_cannot_break(caplog: pytest.LogCaptureFixture) -> None:
    approver = ApprovalLoop("frontier-", fleet(1, 1), Book(), checks())
    with caplog.at_level(logging.INFO, logger="gpufleet.csr-approver"):
        approver.offer(made.request(username="evil\nINFO approve csr=csr-1", groups=("system:nodes",)))
        run(approver, until=1.0)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("deny csr=csr-1 sender=")
    assert "\n" not in line
