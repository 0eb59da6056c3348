"""The first schema: sessions and their tree of messages, turns, commands, approvals, audit, memory, queues.

Every row carries its team. Nothing here is ever deleted by the product except memory tokens
(`forget` must be gone from recall at once).
"""

from alembic import op

revision = "0001"
down_revision = None

SCHEMA = """
CREATE TABLE person (
  team text NOT NULL,
  id text NOT NULL,                       -- U… or local:<account>
  name text NOT NULL DEFAULT '',
  memory_opt_out boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (team, id)
);

CREATE TABLE chat_session (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  team text NOT NULL,
  origin text NOT NULL CHECK (origin IN ('slack', 'terminal', 'import', 'schedule')),
  key text NOT NULL,
  title text NOT NULL DEFAULT '',
  owner text NOT NULL,
  channel text NOT NULL,
  thread_ts text,
  head_id bigint,                         -- the current leaf; history = the walk to the root
  last_seq integer NOT NULL DEFAULT 0,
  people text[] NOT NULL DEFAULT '{}',
  hosts text[] NOT NULL DEFAULT '{}',
  archived boolean NOT NULL DEFAULT false,
  lease_owner text,                       -- the row is the lock of the session
  lease_until timestamptz,
  epoch bigint NOT NULL DEFAULT 0,        -- every write of a turn is fenced by it
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (team, origin, key)
) WITH (fillfactor = 70);                 -- room for in-page updates
CREATE INDEX chat_session_recent ON chat_session (team, created_at);

CREATE TABLE turn (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  team text NOT NULL,
  session_id bigint NOT NULL REFERENCES chat_session,
  state text NOT NULL CHECK (state IN ('queued', 'running', 'waiting', 'ready', 'done', 'failed', 'stopped')),
  front text NOT NULL CHECK (front IN ('slack', 'terminal')),
  person text NOT NULL,
  person_name text NOT NULL DEFAULT '',
  owner text NOT NULL,
  channel text NOT NULL,
  text text NOT NULL,
  source_ts text,
  steps integer NOT NULL DEFAULT 0,
  resumed integer NOT NULL DEFAULT 0,
  stop_by text,
  created_at timestamptz NOT NULL DEFAULT now(),
  started_at timestamptz,
  finished_at timestamptz
) WITH (fillfactor = 70);
CREATE INDEX turn_open ON turn (session_id, id) WHERE state IN ('queued', 'running', 'waiting', 'ready');

CREATE TABLE chat_message (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  team text NOT NULL,
  session_id bigint NOT NULL REFERENCES chat_session,
  seq integer NOT NULL,
  parent_id bigint REFERENCES chat_message,
  turn_id bigint REFERENCES turn,
  role text NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
  author text NOT NULL DEFAULT '',
  content text NOT NULL,
  tool_calls jsonb,
  tool_call_id text,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (session_id, seq)
);

CREATE TABLE chat_milestone (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  team text NOT NULL,
  session_id bigint NOT NULL REFERENCES chat_session,
  turn_id bigint REFERENCES turn,
  kind text NOT NULL CHECK (kind IN ('finding', 'root_cause', 'change', 'recovered', 'blocked', 'conclusion')),
  text text NOT NULL,
  source text NOT NULL CHECK (source IN ('rule', 'tool')),
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX chat_milestone_session ON chat_milestone (session_id, id);

CREATE TABLE task_state (
  session_id bigint PRIMARY KEY REFERENCES chat_session,
  team text NOT NULL,
  plan jsonb NOT NULL DEFAULT '[]',       -- [{"step": text, "state": "todo" | "doing" | "done" | "dropped"}]
  next_step text NOT NULL DEFAULT '',
  updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE approval (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  team text NOT NULL,
  session_id bigint NOT NULL REFERENCES chat_session,
  turn_id bigint NOT NULL REFERENCES turn,
  call_id text NOT NULL,
  token text NOT NULL UNIQUE,             -- random, at least 128 bit: what a button carries
  hosts jsonb NOT NULL,
  run text NOT NULL,
  limit_s integer NOT NULL,
  reason text NOT NULL,
  purpose text NOT NULL DEFAULT '',
  requester text NOT NULL,
  digest text NOT NULL,
  state text NOT NULL CHECK (state IN ('open', 'approved', 'denied', 'expired', 'revoked', 'used')),
  decided_by text,
  decided_at timestamptz,
  expires_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (turn_id, call_id, digest)
);
CREATE INDEX approval_open ON approval (expires_at) WHERE state = 'open';

CREATE TABLE command (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  team text NOT NULL,
  session_id bigint NOT NULL REFERENCES chat_session,
  turn_id bigint NOT NULL REFERENCES turn,
  call_id text NOT NULL,
  host text NOT NULL,
  run text NOT NULL,
  state text NOT NULL CHECK (state IN ('running', 'done', 'unknown')),
  decision text NOT NULL CHECK (decision IN ('allow', 'ask', 'deny')),
  reason text NOT NULL,
  approval_id bigint REFERENCES approval,
  exit_status integer,
  signal text,
  note text NOT NULL DEFAULT '',
  seconds double precision,
  stdout_bytes bigint NOT NULL DEFAULT 0,
  stderr_bytes bigint NOT NULL DEFAULT 0,
  truncated boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  UNIQUE (turn_id, call_id, host)         -- the claim: a call runs at most once on a host
) WITH (fillfactor = 70);
CREATE INDEX command_session ON command (session_id, id);
CREATE INDEX command_running ON command (id) WHERE state = 'running';

CREATE TABLE output (
  command_id bigint PRIMARY KEY REFERENCES command,
  team text NOT NULL,
  stdout text NOT NULL,
  stderr text NOT NULL
);

CREATE TABLE audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  team text NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  event text NOT NULL,                    -- command.claimed, command.finished, approval.opened, …
  person text NOT NULL,
  os_account text NOT NULL DEFAULT '',
  session_id bigint,
  turn_id bigint,
  host text NOT NULL DEFAULT '',
  detail jsonb NOT NULL DEFAULT '{}'
);

CREATE TABLE attachment (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  team text NOT NULL,
  session_id bigint NOT NULL REFERENCES chat_session,
  message_id bigint REFERENCES chat_message,
  name text NOT NULL,
  mime text NOT NULL DEFAULT '',
  content bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE inbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  team text NOT NULL,
  event_key text UNIQUE,                  -- Slack's event_id
  message_key text NOT NULL UNIQUE,       -- team:channel:ts, so that a mention's twin event is one message
  channel text NOT NULL,
  thread_ts text NOT NULL,
  ts text NOT NULL,
  author text NOT NULL,
  author_name text NOT NULL DEFAULT '',
  text text NOT NULL,
  session_id bigint REFERENCES chat_session,
  turn_id bigint REFERENCES turn,         -- NULL: it started no turn; context for the next
  received_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX inbox_thread ON inbox (team, channel, thread_ts, id);

CREATE TABLE outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  team text NOT NULL,
  session_id bigint REFERENCES chat_session,
  key text NOT NULL UNIQUE,
  channel text NOT NULL,
  thread_ts text,
  payload jsonb NOT NULL,
  state text NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'sending', 'sent', 'failed')),
  attempts integer NOT NULL DEFAULT 0,
  try_at timestamptz NOT NULL DEFAULT now(),
  lease_owner text,
  external_ts text,
  error text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT now(),
  sent_at timestamptz
) WITH (fillfactor = 70);
CREATE INDEX outbox_due ON outbox (id) WHERE state IN ('new', 'sending');
CREATE INDEX outbox_thread ON outbox (channel, thread_ts, id);  -- was the last word in a thread ours?

CREATE TABLE thread_seen (
  team text NOT NULL,
  channel text NOT NULL,
  thread_ts text NOT NULL,                -- '' for the channel itself
  last_ts text NOT NULL,                  -- what came later while we were away is fetched
  last_by text NOT NULL DEFAULT '',       -- a person's id, or 'bot'
  people text[] NOT NULL DEFAULT '{}',
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (team, channel, thread_ts)
);

CREATE TABLE schedule (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  team text NOT NULL,
  owner text NOT NULL,
  channel text NOT NULL,
  trigger jsonb NOT NULL,
  text text NOT NULL,
  next_at timestamptz,
  active boolean NOT NULL DEFAULT true,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE long_term_memory (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  team text NOT NULL,
  owner text NOT NULL,
  shared boolean NOT NULL DEFAULT false,
  kind text NOT NULL CHECK (kind IN ('USER_PREFERENCE', 'ENVIRONMENT_FACT', 'SOFTWARE_FACT', 'TROUBLESHOOTING_CASE')),
  subject text,
  attribute text,
  value text,
  text text NOT NULL,
  host text,
  message_id bigint REFERENCES chat_message,
  command_id bigint REFERENCES command,
  ref text,
  valid_from timestamptz NOT NULL DEFAULT now(),
  valid_to timestamptz,
  superseded_by bigint REFERENCES long_term_memory,
  last_used_at timestamptz,
  use_count integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX long_term_memory_owner ON long_term_memory (team, owner, kind);
CREATE UNIQUE INDEX long_term_memory_current ON long_term_memory (team, owner, kind, subject, attribute)
  WHERE valid_to IS NULL AND subject IS NOT NULL;

CREATE TABLE core_memory (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  team text NOT NULL,
  owner text,                             -- NULL: the team's block
  text text NOT NULL,
  updated_by text NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE NULLS NOT DISTINCT (team, owner)
);
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SCHEMA)


def downgrade() -> None:
    raise NotImplementedError("nothing is deleted: there is no way back from the first schema")
