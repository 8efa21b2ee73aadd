"""Programs of gpufleet that run in the fleet, one folder each."""
