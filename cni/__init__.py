"""Pod networking: files for machines, the node program, and the exporter of internet traffic."""
