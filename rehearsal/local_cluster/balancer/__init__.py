"""Network load balancer in front of the API servers of a local cluster."""
