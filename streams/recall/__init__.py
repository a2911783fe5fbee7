"""Recall strategies: pure functions over ports, one published method a file."""
