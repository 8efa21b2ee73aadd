"""A cluster from our boot files beside a bare one of the same programs: nodes joined, pods running, and what each process takes."""
