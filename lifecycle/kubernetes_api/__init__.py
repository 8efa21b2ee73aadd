"""Access to an API server over one connection: kubeconfig, requests with retries."""
