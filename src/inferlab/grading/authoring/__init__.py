"""Writing labs: from text to notebooks and back, a lab's rules, the proof of its grades, publishing."""
