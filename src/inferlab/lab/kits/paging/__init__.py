"""The lab on paged attention: the engine's block tables, a map of its memory, allocators with a fault."""
