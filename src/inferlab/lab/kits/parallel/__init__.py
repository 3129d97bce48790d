"""The lab on parallelism: processes that split a model, what they exchange, machines to reason about."""
