"""opsthread: a Slack thread is a session; commands run over SSH behind a gate; Postgres keeps everything."""

__version__ = "0.1.0"
