"""The last cell of a lab and `inferlab check`: what is missing, and the file that is handed in."""
