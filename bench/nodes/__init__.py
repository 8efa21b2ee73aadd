"""What a node at rest costs the API server, with the manifests that are shipped: requests, open watches and bytes by component."""
