"""The instructor's side: building and releasing labs, collecting hand-ins, grading them in a sandbox, review and reports."""
