"""Approvals that two people must give, what they bind, and the switch that holds everything."""

from alembic import op

revision = "0003"
down_revision = "0002"

SCHEMA = """
ALTER TABLE approval
  ADD COLUMN policy text NOT NULL DEFAULT '',          -- digest of the rules that judged it
  ADD COLUMN danger text NOT NULL DEFAULT '',          -- why two people must say yes
  ADD COLUMN needs integer NOT NULL DEFAULT 1;         -- how many different people must say yes
ALTER TABLE approval ALTER COLUMN policy DROP DEFAULT, ALTER COLUMN danger DROP DEFAULT,
  ALTER COLUMN needs DROP DEFAULT;
CREATE INDEX approval_session ON approval (session_id, id);

CREATE TABLE approval_answer (
  approval_id bigint NOT NULL REFERENCES approval,
  team text NOT NULL,
  person text NOT NULL,
  name text NOT NULL,
  approve boolean NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (approval_id, person, approve)           -- one person's yes counts once
);

CREATE TABLE control (
  team text PRIMARY KEY,
  mode text NOT NULL CHECK (mode IN ('normal', 'read-only', 'stopped')),
  by text NOT NULL,
  why text NOT NULL DEFAULT '',
  at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX command_recent ON command (created_at);
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SCHEMA)


def downgrade() -> None:
    raise NotImplementedError("nothing is deleted: there is no way back")
