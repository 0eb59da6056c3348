"""What a turn has taught, which memories it was given, and how people corrected the reading of their words."""

from alembic import op

revision = "0005"
down_revision = "0004"

SCHEMA = """
ALTER TABLE turn
  ADD COLUMN memory_ids bigint[] NOT NULL DEFAULT '{}',  -- put before the model; their text is kept nowhere else
  ADD COLUMN heard_at timestamptz,                       -- the person's own words were learnt from
  ADD COLUMN learnt_at timestamptz;                      -- what was found was learnt from too: nothing more is due
CREATE INDEX turn_unlearnt ON turn (id) WHERE learnt_at IS NULL;

CREATE INDEX long_term_memory_shared ON long_term_memory (team, subject, attribute)
  WHERE shared AND valid_to IS NULL;      -- what a colleague's newer observation may close

CREATE TABLE intent_correction (
  team text NOT NULL,
  person text NOT NULL,
  words text NOT NULL,                    -- the message, folded
  intent text NOT NULL,                   -- what it means, as its person says
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (team, person, words)
);
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SCHEMA)


def downgrade() -> None:
    raise NotImplementedError("nothing is deleted: there is no way back")
