"""Metrics of the DCGM exporter."""

from __future__ import annotations

import csv

import pytest
from planned_objects import clusters, of_kind

from components.manifests.gpu_metrics import counters_csv


def test_the_counters_are_rows_of_field_type_and_help() -> None:
    rows = [[cell.strip() for cell in row] for row in csv.reader(counters_csv().splitlines())]
    assert {len(row) for row in rows} == {3}
    assert {kind for _, kind, _ in rows} == {"gauge", "counter", "label"}
    fields = [field for field, _, _ in rows]
    assert len(fields) == len(set(fields))
    assert {"DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_ROW_REMAP_FAILURE"} <= set(fields)


def test_no_profiling_field_is_measured_because_it_would_need_a_privilege() -> None:
    assert "DCGM_FI_PROF_" not in counters_csv()


@pytest.mark.parametrize("name", list(clusters()))
def test_gpus_are_read_as_often_as_the_region_file_says(name: str) -> None:
    (exporter,) = [item for item in of_kind(name, "DaemonSet") if item["metadata"]["name"] == "dcgm-exporter"]
    environment = {row["name"]: row.get("value") for row in exporter["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert environment["DCGM_EXPORTER_INTERVAL"] == str(clusters()[name][1].spec.observability.gpu_metrics_seconds * 1000)
