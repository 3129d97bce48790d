"""What all labs' pictures share: one look, film strips, and a slider that works without a kernel."""
