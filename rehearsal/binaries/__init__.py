"""The real programs that a rehearsal runs: which versions, where they are found, and how they are built where they are not."""
