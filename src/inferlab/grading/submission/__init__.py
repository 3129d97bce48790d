"""One submission: what lies in a file that somebody handed in, read, mended, and what grading it means."""
