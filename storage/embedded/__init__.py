"""A Postgres of our own under the data folder, shared by all processes that use the folder."""

from storage.embedded.server import EmbeddedPostgres as EmbeddedPostgres
