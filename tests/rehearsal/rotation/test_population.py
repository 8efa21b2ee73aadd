"""Tests of the population of a simulated rotation."""

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from components.plan import naming
from components.plan.model import ClusterPlan
from lifecycle.rotation.model import Load
from rehearsal.rotation.population import FILE, load_figures, populate
from stacks.file_problems import InvalidFileError
from stacks.load import load_plan


@cache
def cluster(number: int) -> ClusterPlan:
    return load_plan("southcentralus").clusters[number]


def test_a_seed_determines_the_population() -> None:
    assert populate(cluster(0), 1) == populate(cluster(0), 1)
    assert populate(cluster(0), 1) != populate(cluster(0), 2)


@pytest.mark.parametrize("number", [0, 2])
def test_the_shares_of_contents_are_those_of_the_file(number: int) -> None:
    people = populate(cluster(number), 3)
    in_gangs = {machine for job in people.jobs for machine in job.machines}
    gpu = [(index, one) for index, one in enumerate(people.machines) if one.gpus]
    loads = Counter(one.load for index, one in gpu if index not in in_gangs)
    assert len(in_gangs) / len(gpu) == pytest.approx(0.65, abs=0.001)
    assert {load: round(count / len(gpu), 2) for load, count in loads.items()} == {
        Load.EMPTY: 0.05,
        Load.BALLOON: 0.15,
        Load.LOW: 0.10,
        Load.NORMAL: 0.05,
    }


def with_largest_gang(largest: int | None) -> ClusterPlan:
    """Return a cluster of southcentralus whose pools have another largest gang."""
    pools = (replace(pool, spec=pool.spec.model_copy(update={"largest_gang": largest})) for pool in cluster(0).pools)
    return replace(cluster(0), pools=tuple(pools))


def test_no_gang_is_larger_than_the_largest_one_of_its_pool() -> None:
    for largest, expected in ((100, 96), (40, 32), (128, 128)):
        people = populate(with_largest_gang(largest), 1)
        assert max(len(job.machines) for job in people.jobs) == expected
        assert sum(len(job.machines) for job in people.jobs) == 4_875


def test_a_gang_has_machines_of_one_team_and_of_one_scale_set_unless_it_is_large() -> None:
    people = populate(with_largest_gang(None), 1)
    largest_in_set = max(size.machines for size in people.figures.gangs.sizes)
    sets_of_large = []
    for job in people.jobs:
        members = [people.machines[number] for number in job.machines]
        assert len({one.team for one in members}) == 1
        sets = {one.scale_set for one in members}
        if len(members) > largest_in_set:
            sets_of_large.append(len(sets))
        else:
            assert len(sets) == 1
    assert sets_of_large
    assert min(sets_of_large) > 1
    assert max(Counter(number for job in people.jobs for number in job.machines).values()) == 1


def test_teams_have_the_machines_of_their_allocations() -> None:
    teams = Counter(one.team for one in populate(cluster(0), 1).machines)
    assert teams == {"pretraining": 4500, "multimodal": 1800, "alignment": 900, "": 300}


def test_machines_have_the_names_that_azure_gives_them() -> None:
    for machine in populate(cluster(0), 1).machines:
        assert naming.pool_scale_set_of(machine.name) == machine.scale_set


def test_a_small_cluster_has_a_small_gang() -> None:
    (dev,) = load_plan("dev").clusters
    people = populate(dev, 1)
    assert [len(job.machines) for job in people.jobs] == []
    assert Counter(one.load for one in people.machines if not one.gpus) == {Load.NORMAL: 8, Load.LOW: 1, Load.EMPTY: 1}


def test_shares_of_more_than_all_machines_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "population.yaml"
    path.write_text(FILE.read_text().replace("gpu_machines: {gangs: 0.65", "gpu_machines: {gangs: 0.75"))
    with pytest.raises(InvalidFileError, match=r"gpu_machines: .*has shares with a sum of 1\.05; write at most 1 in total"):
        load_figures(path)
