"""Exporter gpufleet-traffic-exporter: internet traffic of the machine and of each of its pods, for Prometheus."""
