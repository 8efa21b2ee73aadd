"""What pod networking costs a machine: in throughput, in time until a pod has its address, and in telling Prometheus."""
