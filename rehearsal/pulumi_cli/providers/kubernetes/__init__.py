"""kubernetes for the rehearsal: objects of the program, as requests to a cluster's real API servers."""
