"""Registration of the embedded Azure's machines as nodes of a real control plane, and their heartbeats."""
