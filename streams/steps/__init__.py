"""The steps of the flow, each one async function over ports: batch in, what it decided out."""
