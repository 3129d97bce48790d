"""InferLab: labs that trace real diffusion pipelines and language models, and grade what learners build on them."""

__version__ = "0.1.0"
