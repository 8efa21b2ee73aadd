"""A provider process reads the shapes of bodies out of a file where there is one, and does as well without."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from provider_process import ROOT

CODE = """
import json, os, pathlib, sys
from rehearsal.pulumi_cli.providers.azure_native.resource_types import resource_type_of
from rehearsal.pulumi_cli.providers.azure_native.shape_cache import take_known_shapes
def look():
    kind = resource_type_of("azure-native:network:VirtualNetwork")
    assert kind.takes_location and "addressSpace" in kind.shape.inner.properties
    return [path.read_text() for path in pathlib.Path(os.environ["GPUFLEET_CACHE"]).glob("azure-shapes/*")]
seen = [look()]
reads = "azure.mgmt.network" in sys.modules
def again():
    take_known_shapes.cache_clear()
    resource_type_of.cache_clear()
    seen.append(look())
for broken in sys.argv[1:]:
    (file,) = pathlib.Path(os.environ["GPUFLEET_CACHE"], "azure-shapes").iterdir()
    file.write_text(broken)
    again()
# Where nothing can be written, it costs time alone.
os.environ["GPUFLEET_CACHE"] = os.devnull
again()
print(json.dumps([reads, [one == seen[0] for one in seen], len(seen[0])]))
"""


def looks(cache: Path, *broken: str) -> Any:
    """Run a process with this cache folder and return its results.

    They are: whether it read the official clients; whether the file is repaired after each broken text was written, and last whether
    a file exists where no folder can be created; and the number of files.
    """
    ended = subprocess.run(
        [sys.executable, "-c", CODE, *broken],
        env={"GPUFLEET_CACHE": str(cache)},
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_the_clients_are_read_once_and_again_where_the_file_is_broken(tmp_path: Path) -> None:
    texts = ("", '{"roots": {', "[]", "{}", '{"roots": [], "shapes": []}', '{"roots": {"a": 0}, "shapes": [null]}')
    assert looks(tmp_path, *texts) == [True, [*[True] * (len(texts) + 1), False], 1]
    assert looks(tmp_path) == [False, [True, False], 1]
