"""Model of the parts of Azure that a GPU fleet uses: without I/O, on an injected clock, with the same history for the same seed."""
