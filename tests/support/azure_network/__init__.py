"""Azure's network on one machine: machines, pods, the fabric between them and the internet, each a network namespace of Linux."""
