"""Units are read as systemd reads them, and whatever would be read otherwise is refused or listed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from components.boot.api_server import boot_api_server
from components.boot.etcd import boot_etcd
from components.boot.unit import exec_start
from rehearsal.local_cluster.systemd.unit_directives import SUPPORTED, WITHOUT_MEANING
from rehearsal.local_cluster.systemd.unit_file import Unit, UnitFileError, expanded, read_unit, variables
from stacks.load import load_plan


def _service(lines: str) -> Unit:
    return read_unit("a.service", f"[Service]\n{lines}\n")


def _rendered() -> dict[str, str]:
    plan = load_plan("dev")
    (cluster,) = plan.clusters
    boots = (boot_etcd(cluster, cluster.etcd, cluster.etcd.members[0]), boot_api_server(plan, cluster))
    return {file.path: file.content for boot in boots for file in boot.files if file.path.endswith((".service", ".timer"))}


@pytest.mark.parametrize(("path", "text"), _rendered().items(), ids=[path.rpartition("/")[2] for path in _rendered()])
def test_every_rendered_unit_is_read_and_each_of_its_directives_is_in_a_table(path: str, text: str) -> None:
    unit = read_unit(path.rpartition("/")[2], text)
    assert unit.unknown == ()
    written = [line for line in text.splitlines() if "=" in line and not line.startswith((" ", "#", "["))]
    assert sum(map(len, unit.settings.values())) == len([line for line in written if not line.endswith("=")])


def test_a_flag_with_a_percent_sign_comes_back_as_it_was_given() -> None:
    line = exec_start("/usr/local/bin/p", {"a": "50%", "b": ("x", "y")})
    assert _service(line).start[0].argv == ("/usr/local/bin/p", "--a=50%", "--b=x,y")


def test_lines_continue_over_comments_and_quotes_hold_words_together() -> None:
    unit = _service("ExecStart=/bin/p \\\n# a comment\n  --a=1 \\\n  \"two words\"\n; another\nEnvironment=A=1 'B=2 3'\nEnvironment=C=%%")
    assert unit.start[0].argv == ("/bin/p", "--a=1", "two words")
    assert unit.environment == {"A": "1", "B": "2 3", "C": "%"}


def test_prefixes_are_read_and_after_an_at_sign_the_second_word_is_a_name() -> None:
    assert (_service("ExecStart=-+!/bin/p a").start[0].prefixes, _service("ExecStart=@/bin/p name a").start[0].argv) == (
        "-+!",
        ("/bin/p", "a"),
    )


def test_variables_are_put_in_as_systemd_does() -> None:
    unit = _service("ExecStart=/bin/p --a=${A}/x $B $C --d=$A ${NONE} $$ ${B}")
    assert expanded(unit.start[0], {"A": "1 2", "B": "x  y", "C": ""}) == ("/bin/p", "--a=1 2/x", "x", "y", "--d=$A", "", "$", "x  y")
    assert variables(unit.start[0]) >= {"A", "B", "C", "NONE"}
    assert expanded(_service("ExecStart=:/bin/p ${A}").start[0], {"A": "1"}) == ("/bin/p", "${A}")


def test_a_drop_in_adds_and_an_empty_assignment_clears() -> None:
    unit = read_unit(
        "a.service",
        "[Service]\nExecStart=/bin/p one\nEnvironment=A=1\nRestartSec=5\n",
        [("20.conf", "[Service]\nExecStart=\nExecStart=/bin/p two\n"), ("10.conf", "[Service]\nEnvironment=B=2\nRestartSec=250ms\n")],
    )
    assert (unit.start[0].argv, dict(unit.environment), unit.restart_seconds) == (("/bin/p", "two"), {"A": "1", "B": "2"}, 0.25)


def test_times_are_read_with_their_units() -> None:
    unit = _service("ExecStart=/bin/p\nRestartSec=1min 30s\nTimeoutStopSec=infinity")
    assert (unit.restart_seconds, unit.stop_seconds) == (90.0, float("inf"))


def test_an_unknown_directive_is_listed_and_a_meaningless_one_too() -> None:
    unit = _service("ExecStart=/bin/p\nFrobnicate=yes\nOOMScoreAdjust=-5")
    assert (unit.unknown, unit.without_meaning) == (("Service.Frobnicate",), ("Service.OOMScoreAdjust",))


def test_no_directive_is_in_both_tables_and_each_has_its_reason() -> None:
    assert not SUPPORTED.keys() & WITHOUT_MEANING.keys()
    assert all(len(why) > 5 for table in (SUPPORTED, WITHOUT_MEANING) for why in table.values())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[Service]\nExecStart=/bin/p \\", "continued"),
        ("ExecStart=/bin/p\n", "no assignment"),
        ("[Service]\nnonsense\n", "no assignment"),
        ("[Service]\nExecStart=p\n", "absolute path"),
        ("[Service]\nExecStart=/bin/p %n\n", "specifier"),
        ("[Service]\nExecStart=/bin/p a\\x20b\n", "backslash"),
        ('[Service]\nExecStart=/bin/p "a\n', "quotation"),
        ("[Service]\nEnvironment=A\nExecStart=/bin/p\n", "NAME=VALUE"),
        ("[Service]\nType=simple\n", "no ExecStart"),
        ("[Service]\nType=dbus\nExecStart=/bin/p\n", "supported are"),
        ("[Service]\nRestart=on-abort\nExecStart=/bin/p\n", "supported are"),
        ("[Service]\nExecStart=/bin/p\nExecStart=/bin/q\n", "only a oneshot"),
        ("[Unit]\nStartLimitIntervalSec=10\n[Service]\nExecStart=/bin/p\n", "only 0"),
    ],
)
def test_what_systemd_would_read_otherwise_is_refused_with_the_unit_and_the_reason(text: str, why: str) -> None:
    with pytest.raises(UnitFileError) as refused:
        read_unit("a.service", text)
    assert refused.value.where == "a.service"
    assert why in refused.value.why


def test_a_time_that_is_none_is_refused() -> None:
    unit = _service("ExecStart=/bin/p\nRestartSec=soon")
    with pytest.raises(UnitFileError, match="no time span"):
        _ = unit.restart_seconds


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_itself_reads_what_is_read_here(tmp_path: Path) -> None:
    """Only that it knows every directive: it tells of those that it does not."""
    for path, text in _rendered().items():
        (tmp_path / path.rpartition("/")[2]).write_text(text)
    units = sorted(str(path) for path in tmp_path.iterdir())
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False)
    assert not [line for line in done.stderr.splitlines() if "Unknown" in line]
