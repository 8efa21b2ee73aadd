"""Pulumi providers of the rehearsal: programs that Pulumi's engine starts and talks to over gRPC."""
