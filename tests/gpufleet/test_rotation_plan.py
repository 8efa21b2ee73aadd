"""gpufleet rotation plan: a forecast with its assumptions, errors in one line, and nothing that is changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpufleet.rotation_plan import ImageOptionError, checked_images
from stacks.load import load_plan

GPUFLEET = Path(sys.executable).with_name("gpufleet")
MONDAY = "2026-11-30T06:00"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the real command."""
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run([GPUFLEET, "rotation", "plan", *words], capture_output=True, text=True, timeout=120, check=False, env=environment)


def test_a_forecast_has_the_end_the_order_the_windows_and_a_comparison_and_labels_the_population() -> None:
    result = run("dev", "--start", MONDAY, "--seeds", "2", "--compare")
    assert result.returncode == 0, result.stderr
    assert result.stderr == "rotation plan: 6 simulations\n"
    lines = result.stdout.splitlines()
    assert lines[0] == "dev: rotation of 12 nodes in 1 cluster, from Mon 2026-11-30 06:00 CET"
    assert lines[1] == "  modelled population (rehearsal/rotation/population.yaml), calm conditions, 2 seeds"
    assert [line.split()[0] for line in lines[3:6]] == ["p10", "p50", "p90"]
    assert "  window: 12 starts from Mon 2026-11-30 06:00 CET to " in result.stdout
    assert sum("canary; " in line for line in lines) == 2, "one for each pool"
    assert "pool cpu: 10 nodes (" in result.stdout
    compared = lines[lines.index("compared, medians of the same populations:") + 2 : -1]
    assert [line[:18].strip() for line in compared] == ["rotation", "barrier waves", "node order"]
    assert lines[-1] == "nothing was changed"


def test_json_has_the_same_figures_and_the_seed_of_each_simulation() -> None:
    result = run("dev", "--start", MONDAY, "--seeds", "2", "--image", "cpu=2026.10.0", "--json")
    document = json.loads(result.stdout)
    assert (document["jobs"], document["nodes"], document["images"]) == ("modelled population", 10, {"cpu": "2026.10.0"})
    assert [(one["strategy"], one["seed"]) for one in document["simulations"]] == [("rotation", 1), ("rotation", 2)]
    (cluster,) = document["clusters"]
    assert [row["pool"] for row in cluster["pools"]] == ["cpu"]
    assert cluster["states"] == {"ready": 10}
    assert document["percentiles"]["p90"]["finished"] == max(one["finished"] for one in document["simulations"])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("nd-h10=2026.11.0", "nd-h10 is no image in node-images/versions.yaml; did you mean nd-h100?"),
        ("cpu=2026.12.0", "cpu has no version 2026.12.0 in node-images/versions.yaml; did you mean 2026.11.0?"),
        ("cpu", "is not NAME=VERSION; write for example --image cpu=2026.11.0"),
        ("nd-h100=2026.11.0", "no pool of dev uses nd-h100; did you mean nc-a100?"),
    ],
)
def test_an_image_is_validated_against_the_published_versions(option: str, message: str) -> None:
    with pytest.raises(ImageOptionError) as refused:
        checked_images(load_plan("dev"), ("dev",), (option,))
    assert str(refused.value) == f"--image {option}: {message}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--cluster", "prod"), "region dev: it has no cluster 'prod': write one of dev\n"),
        (("--start", "soon"), "--start soon: is no time; write 2026-11-30T06:00 in the cluster's time zone"),
    ],
)
def test_a_wrong_option_is_one_line_with_a_remedy(words: tuple[str, ...], message: str) -> None:
    result = run("dev", *words)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith(message)
