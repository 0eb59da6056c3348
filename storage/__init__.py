"""Postgres: records, tables, and the transactions over them. Knows nothing of bot/."""
