"""The programs that a bench has Pulumi's own engine run, each of which tells the CPU seconds of its work."""
