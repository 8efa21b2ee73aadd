"""Compute of the embedded Azure: scale sets with their instances, virtual machines and disks."""
