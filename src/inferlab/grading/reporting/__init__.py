"""What comes out of the gradebook: tables, similar answers, and the feedback page."""
