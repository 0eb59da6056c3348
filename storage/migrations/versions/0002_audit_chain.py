"""The chain over the audit log: seal columns, signed heads, and triggers that refuse other changes.

Rows that are there already get a salt and are sealed by the first process that runs. The order of the
columns' life: inserted without a link -> sealed once -> the payload erased once, digests kept.
"""

from alembic import op

revision = "0002"
down_revision = "0001"

SCHEMA = """
ALTER TABLE audit
  ADD COLUMN salt uuid DEFAULT gen_random_uuid(),  -- part of the payload; erased with it
  ADD COLUMN erased_at timestamptz,
  ADD COLUMN link bigint CHECK (link > 0),         -- place in the chain; NULL: not sealed yet
  ADD COLUMN payload_digest bytea,                 -- storage/audit/digest.py says over what
  ADD COLUMN digest bytea,
  ADD COLUMN hash bytea,
  ADD CONSTRAINT audit_sealed_whole
    CHECK (num_nulls(link, payload_digest, digest, hash) IN (0, 4)),
  ADD CONSTRAINT audit_erased_sealed CHECK (erased_at IS NULL OR link IS NOT NULL);
CREATE UNIQUE INDEX audit_link ON audit (link) WHERE link IS NOT NULL;
CREATE INDEX audit_unsealed ON audit (id) WHERE link IS NULL;

CREATE TABLE audit_head (                 -- of the installation, as the chain is: no team
  link bigint PRIMARY KEY,
  hash bytea NOT NULL,
  at text NOT NULL,                       -- exactly as it was signed
  key text NOT NULL,                      -- the public key; '' = unsigned
  signature text NOT NULL
);

CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.id, NEW.team, NEW.at, NEW.event, NEW.session_id, NEW.turn_id, NEW.host)
     IS DISTINCT FROM (OLD.id, OLD.team, OLD.at, OLD.event, OLD.session_id, OLD.turn_id, OLD.host) THEN
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'restrict_violation';
  END IF;
  IF OLD.link IS NULL AND NEW.link IS NOT NULL
     AND (NEW.person, NEW.os_account, NEW.detail, NEW.salt, NEW.erased_at)
     IS NOT DISTINCT FROM (OLD.person, OLD.os_account, OLD.detail, OLD.salt, OLD.erased_at) THEN
    RETURN NEW;  -- sealed
  END IF;
  IF OLD.erased_at IS NULL AND NEW.erased_at IS NOT NULL
     AND (NEW.link, NEW.payload_digest, NEW.digest, NEW.hash)
     IS NOT DISTINCT FROM (OLD.link, OLD.payload_digest, OLD.digest, OLD.hash)
     AND NEW.person = '[erased]' AND NEW.os_account = '' AND NEW.detail = '{}' AND NEW.salt IS NULL THEN
    RETURN NEW;  -- erased
  END IF;
  RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER audit_change BEFORE UPDATE ON audit FOR EACH ROW EXECUTE FUNCTION audit_change();
CREATE TRIGGER audit_refuse BEFORE DELETE OR TRUNCATE ON audit
  FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_head_refuse BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_head
  FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SCHEMA)


def downgrade() -> None:
    raise NotImplementedError("nothing is deleted: the chain stays")
