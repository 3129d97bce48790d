"""How the bundled flow-matching transformer and the bundled video model were trained: see README.md here."""
