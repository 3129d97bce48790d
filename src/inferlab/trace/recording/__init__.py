"""What happens during a traced run: finds the boundaries, wraps them, and records each crossing."""
