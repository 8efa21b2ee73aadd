"""Local up: `gpufleet up` on the model of Azure, in virtual time."""
