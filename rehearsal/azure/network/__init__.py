"""Azure's networks: addresses, subnets, peerings, security groups, ways out, load balancers, private links and names."""
