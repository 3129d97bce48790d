"""What a finished trace answers: its boundaries, their shapes, a loop's steps, and how two traces differ."""
