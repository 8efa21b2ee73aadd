"""Run the steps of a runbook, with a test's values for its variables."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs/runbooks"
FENCE = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{2,} (.+)$", re.MULTILINE)
EXPORT = re.compile(r"^export ([A-Z_]+)=", re.MULTILINE)
VARIABLES = "Set first"
"""Heading of the block that exports the variables of a runbook, with example values. A test replaces some or all of them."""


def steps(text: str) -> dict[str, list[str]]:
    """Return the shell blocks of a document by their heading, in order."""
    found: dict[str, list[str]] = {}
    headings = [(match.start(), match[1]) for match in HEADING.finditer(text)]
    for block in FENCE.finditer(text):
        heading = [name for at, name in headings if at < block.start()][-1]
        found.setdefault(heading, []).append(block[1])
    return found


class Runbook:
    """One runbook, with values in place of its example's, and the environment and directory of an operator's shell."""

    def __init__(self, name: str, values: Mapping[str, str], environment: Mapping[str, str], directory: Path) -> None:
        self.steps = steps((FOLDER / f"{name}.md").read_text())
        self.environment, self.directory = dict(environment), directory
        self.left = [heading for heading in self.steps if heading != VARIABLES]
        (self.exports,) = self.steps[VARIABLES]
        unknown = set(values) - set(EXPORT.findall(self.exports))
        assert not unknown, f"{name} exports no {', '.join(sorted(unknown))}"
        for variable, value in values.items():
            self.exports = re.sub(
                rf"^export {variable}=.*$", lambda _, v=variable, w=value: f"export {v}={shlex.quote(w)}", self.exports, flags=re.MULTILINE
            )

    def run(self, heading: str, *, fails: bool = False) -> str:
        """Run the blocks below a heading and return their output with errors. Each block must succeed, or fail if fails is true."""
        self.left = [one for one in self.left if one != heading]
        output = ""
        for block in self.steps[heading]:
            script = f"set -eu -o pipefail\n{self.exports}\n{block}"
            done = subprocess.run(
                ["bash", "-c", script],
                cwd=self.directory,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            output += done.stdout
            assert (done.returncode != 0) == fails, f"{heading}: status {done.returncode}\n{block}\n{done.stdout}"
        return output
