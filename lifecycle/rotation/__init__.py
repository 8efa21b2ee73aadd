"""Rotation: move every machine of a cluster to the pinned image within budgets, with at most one interruption per job."""
