"""Node program gpufleet-node: pod network, accounting and shaping of a machine, with the standard library only."""
