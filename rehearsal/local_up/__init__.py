"""The embedded Azure as `gpufleet up` meets it: the Pulumi program's resources are put into the model, on virtual time."""
