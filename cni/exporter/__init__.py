"""The exporter gpufleet-traffic-exporter: what the machine and each of its pods send to the internet and get from it, for Prometheus."""
