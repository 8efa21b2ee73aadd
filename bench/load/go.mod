module gpufleet/load

go 1.24
