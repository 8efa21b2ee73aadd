"""Upload of etcd snapshots to blob storage."""
