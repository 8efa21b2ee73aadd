"""Pod networking: what machines are told of it, the program that keeps it on a node, and the exporter of its traffic."""
