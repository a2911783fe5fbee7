"""Edits of what was consolidated: drift, diagnosis, editing, abstraction (All-Mem §3.3, SimpleMem §2.2)."""
