"""Loaders, measurements and the sample conversation."""
