"""What the labs of one subject share: workloads, faults to diagnose, measurements and their pictures."""
