"""A model of Azure for the parts that a GPU fleet uses: pure, on an injected clock, the same history for the same seed."""
