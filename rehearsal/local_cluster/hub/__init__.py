"""Puts programs where the hub's network is: namespaces with its addresses, the embedded Azure, and clusters that start as it has them."""
