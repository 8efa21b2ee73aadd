"""How the machines of the embedded Azure become nodes of a real control plane, and stay so."""
