"""The audit log's keeper: seals rows, signs heads, sends them to the sink, and verifies all of it."""
