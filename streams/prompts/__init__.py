"""The prompts, one module for each purpose, in our own words, with the form of the reply beside each."""
