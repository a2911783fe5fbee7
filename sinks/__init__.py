"""Doors: one external thing per file, each behind a port of `lamina.streams.ports`."""
