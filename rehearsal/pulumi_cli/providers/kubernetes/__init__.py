"""kubernetes for the rehearsal: objects of the program, as calls of a cluster's real API servers."""
