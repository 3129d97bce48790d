"""Labs on diffusion pipelines: planted faults, the stages of a call, solvers compared."""
