"""Run systemd units without systemd: unit files, services and their processes."""
