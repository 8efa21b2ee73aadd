"""Networks of the embedded Azure: addresses, subnets, peerings, security groups, gateways, load balancers, private links and DNS."""
