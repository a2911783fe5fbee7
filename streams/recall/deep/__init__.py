"""`deep` (RLM-Memory §4): a model that reads the history by programs of its own, run in a sandbox."""
