"""The gate: a pure judgement of one command line."""
