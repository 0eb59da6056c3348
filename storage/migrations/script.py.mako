"""${message}."""

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}

CHANGES = """
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(CHANGES)


def downgrade() -> None:
    raise NotImplementedError("nothing is deleted: there is no way back")
