"""Programs that a benchmark runs with Pulumi's own engine; each reports the CPU seconds of its work."""
