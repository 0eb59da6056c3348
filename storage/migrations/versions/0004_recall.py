"""Words by which memories and messages are found, whose they are, and what a memory keeps beside its text.

A scope is a set of texts that are always seen together. Its number leads the key of every token, so that a
search reads the tokens of the scopes it was given and of no others.
"""

from alembic import op

revision = "0004"
down_revision = "0003"

SCHEMA = """
CREATE TABLE recall_scope (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  team text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('person', 'team', 'messages')),
  owner text NOT NULL DEFAULT '',         -- whose memories, or whose sessions; '' for the team's
  place text NOT NULL DEFAULT '',         -- team: the host they are about; messages: the channel
  docs bigint NOT NULL DEFAULT 0,         -- texts in it now
  words bigint NOT NULL DEFAULT 0,        -- tokens in it now
  UNIQUE (team, kind, owner, place)
) WITH (fillfactor = 50);

CREATE TABLE memory_token (
  scope_id bigint NOT NULL,
  token text COLLATE "C" NOT NULL,
  memory_id bigint NOT NULL,
  PRIMARY KEY (scope_id, token, memory_id)
);

CREATE TABLE message_token (
  scope_id bigint NOT NULL,
  token text COLLATE "C" NOT NULL,
  message_id bigint NOT NULL,
  PRIMARY KEY (scope_id, token, message_id)
);

CREATE TABLE recall_session (             -- how far a session's messages have their tokens
  session_id bigint PRIMARY KEY REFERENCES chat_session,
  team text NOT NULL,
  scope_id bigint NOT NULL REFERENCES recall_scope,
  last_seq integer NOT NULL,              -- the session's when it was looked at, as is
  updated_at timestamptz NOT NULL,        -- this one
  docs integer NOT NULL                   -- messages with tokens
) WITH (fillfactor = 70);

ALTER TABLE long_term_memory
  ADD COLUMN scope_id bigint REFERENCES recall_scope,  -- where its tokens are; NULL: nowhere
  ADD COLUMN words integer NOT NULL DEFAULT 0,         -- how many
  ADD COLUMN source jsonb,                             -- where an import says it comes from
  ADD COLUMN confirmed_at timestamptz NOT NULL DEFAULT now(),  -- last seen to be so
  ADD COLUMN forgotten_at timestamptz;                 -- what it said is erased; kept so as not to learn it again
CREATE INDEX long_term_memory_scope ON long_term_memory (scope_id) WHERE scope_id IS NOT NULL;
CREATE INDEX long_term_memory_forgotten ON long_term_memory (team, owner) WHERE forgotten_at IS NOT NULL;
CREATE INDEX long_term_memory_unused ON long_term_memory (id)
  WHERE kind = 'TROUBLESHOOTING_CASE' AND valid_to IS NULL;
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SCHEMA)


def downgrade() -> None:
    raise NotImplementedError("nothing is deleted: there is no way back")
