"""Runs the Pulumi program in this process, on the test monitor of the Pulumi SDK, and records what it registers."""
