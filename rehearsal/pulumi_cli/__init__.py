"""The Pulumi CLI, driven through the Automation API against the embedded Azure and real control planes in a hub namespace."""
