"""The query service: HTTP over the tables and the vector store."""
