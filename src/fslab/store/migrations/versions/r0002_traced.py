"""A separate table for traced trials, which are never compared. They cannot be changed either."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create the table, and the triggers that prevent changes."""
    op.create_table(
        "traced",
        sa.Column("number", ROW_ID, primary_key=True),
        sa.Column("campaign", ROW_ID, sa.ForeignKey("campaigns.number"), nullable=False),
        sa.Column("cell", sa.String(32), nullable=False),
        sa.Column("record", sa.JSON, nullable=False),
    )
    match op.get_bind().dialect.name:
        case "sqlite":
            for verb in ("update", "delete"):
                op.execute(
                    f"CREATE TRIGGER traced_no_{verb} BEFORE {verb.upper()} ON traced "
                    "BEGIN SELECT RAISE(ABORT, 'trials are immutable'); END"
                )
        case "postgresql":
            op.execute(
                "CREATE TRIGGER traced_immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON traced "
                "FOR EACH STATEMENT EXECUTE FUNCTION fslab_immutable()"
            )
