"""The report page of a rehearsal."""

from rehearsal.report.page import render_report, write_report

__all__ = ["render_report", "write_report"]
