"""Pinned programs that a rehearsal runs: their versions, the search for them, and their build."""
