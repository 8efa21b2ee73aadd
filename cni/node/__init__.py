"""The node program gpufleet-node: keeps a machine's pod network, accounting and shaping in place, with the standard library alone."""
