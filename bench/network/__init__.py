"""Cost of pod networking for a machine: throughput, time until a pod has its address, and scrapes."""
