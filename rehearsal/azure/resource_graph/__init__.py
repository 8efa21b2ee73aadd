"""Azure Resource Graph: its tables, and queries in a subset of its language."""
