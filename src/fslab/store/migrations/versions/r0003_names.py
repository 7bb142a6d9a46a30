"""Names and notes of campaigns. A campaign can be deleted; single trials still cannot be changed or deleted."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
IMMUTABLE = ("trials", "metrics", "probes", "warnings", "raw_output", "traced")
_NO_DELETE = """
CREATE TRIGGER NAME_no_delete BEFORE DELETE ON NAME WHEN NOT EXISTS (SELECT 1 FROM deletions)
BEGIN SELECT RAISE(ABORT, 'trials are immutable'); END
"""


def upgrade() -> None:
    """Add the columns, and allow deletes while a campaign is marked as being deleted."""
    op.add_column("campaigns", sa.Column("name", sa.String(128)))
    op.add_column("campaigns", sa.Column("note", sa.Text))
    op.create_index("campaign_name", "campaigns", ["name"], unique=True)
    op.create_table(
        "deletions", sa.Column("campaign", ROW_ID, sa.ForeignKey("campaigns.number"), primary_key=True)
    )
    match op.get_bind().dialect.name:
        case "sqlite":
            for name in IMMUTABLE:
                op.execute(f"DROP TRIGGER {name}_no_delete")
                op.execute(_NO_DELETE.replace("NAME", name))
        case "postgresql":
            op.execute(
                "CREATE OR REPLACE FUNCTION fslab_immutable() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN IF TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM deletions) THEN RETURN NULL; END IF; "
                "RAISE EXCEPTION 'trials are immutable'; END $$"
            )
