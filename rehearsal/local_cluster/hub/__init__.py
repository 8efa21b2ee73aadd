"""The hub namespace: network namespaces with the hub's addresses, the embedded Azure, and the clusters that it contains."""
