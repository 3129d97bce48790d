"""The website, built once and looked at in a real browser."""
