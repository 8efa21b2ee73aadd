"""Life of nodes: the decision core of rotation, its journal, and its adapters for Kubernetes and Azure."""
