"""Small fleets for the tests of a simulated rotation: machines in scale sets of one pool, and gangs on them."""

from collections.abc import Sequence

from lifecycle.rotation.model import Load, RunNode
from lifecycle.rotation.policy import Growth, Policy
from rehearsal.azure.durations import Duration
from rehearsal.rotation.modelled_fleet import ModelledFleet
from rehearsal.rotation.population import Conditions, Job, Machine, Population, shipped_figures

STARTED = 1_800_000_000
FIXED = {
    name: Duration(median_seconds=seconds) for name, seconds in (("vm.reimage", 90), ("vm.boot", 75), ("vm.delete", 60), ("vm.create", 45))
}
"""Durations that do not vary."""
CALM = Conditions(honours_signal=1.0, checkpoint=Duration(median_seconds=120), failing_share=0.0, hardware_share=0.0)
DEAF = CALM.model_copy(update={"honours_signal": 0.0})


def population(sets: Sequence[int], gangs: Sequence[Sequence[int]] = (), load: Load = Load.EMPTY, seed: int = 1) -> Population:
    """A pool with the given machines per scale set; the machines of no gang have a load."""
    in_gangs = {number for gang in gangs for number in gang}
    names = [(f"set-{index}", f"set-{index}-{number:03d}") for index, count in enumerate(sets) for number in range(count)]
    machines = tuple(
        Machine(name, scale_set, "gpu", "", 8, 0, Load.EMPTY if number in in_gangs else load, int(number not in in_gangs and load > 0))
        for number, (scale_set, name) in enumerate(names)
    )
    jobs = tuple(
        Job(f"job-{index}", tuple(gang), Load.NORMAL, 8, remaining=1e6, checkpoint_age=600.0, checkpoint_every=1e7)
        for index, gang in enumerate(gangs)
    )
    return Population("small", seed, machines, jobs, shipped_figures())


def fleet(people: Population, conditions: Conditions = CALM) -> ModelledFleet:
    """A fleet of a population at STARTED."""
    return ModelledFleet(people, conditions, STARTED, durations=FIXED)


def nodes(people: Population) -> list[RunNode]:
    """A run of all machines."""
    return [RunNode(one.name, one.scale_set, one.pool, "image") for one in people.machines]


def policy(machines: int, **changes: object) -> Policy:
    """A policy with a budget, without canaries and growth unless they are given."""
    values: dict[str, object] = {
        "per_scale_set": machines,
        "scale_sets_at_once": 100,
        "deadlines": {Load.BALLOON: 0.0, Load.LOW: 600.0, Load.NORMAL: 3_600.0, Load.HIGH: 14_400.0},
        "canaries": 0,
        "growth": Growth(first=10_000),
    }
    return Policy(machines=machines, **(values | changes))  # type: ignore[arg-type]
