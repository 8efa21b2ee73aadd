"""Cost of a node at rest for the API server, with the shipped manifests: requests, open watches and bytes by component."""
