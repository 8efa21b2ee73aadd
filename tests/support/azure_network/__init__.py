"""Azure's network on one machine: machines, pods, the virtual network and the internet, each a network namespace of Linux."""
