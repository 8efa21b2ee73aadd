"""Run the Pulumi program in this process, on the test monitor of Pulumi's SDK, and record what it registers."""
