"""Benchmark of gpufleet's cluster and a bare cluster of the same programs: joined nodes, running pods, and resource use by process."""
