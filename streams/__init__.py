"""Pure decisions: records, topics, settings, ports and every algorithm; values in, values and reasons out."""
