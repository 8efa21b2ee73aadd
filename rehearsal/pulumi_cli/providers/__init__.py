"""Pulumi providers of the rehearsal: programs that Pulumi's engine starts and calls over gRPC."""
