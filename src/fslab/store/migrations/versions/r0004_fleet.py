"""The machines of a fleet, their assignments, and their schedules."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the three tables."""
    op.create_table(
        "fleet_machines",
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("facts", sa.JSON, nullable=False),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("running", sa.Text),
        sa.Column("last_seen", TIME, nullable=False),
    )
    op.create_table(
        "fleet_assignments",
        sa.Column("number", ROW_ID, primary_key=True),
        sa.Column("id", sa.String(128), nullable=False, unique=True),
        sa.Column("run", sa.String(64), nullable=False, index=True),
        sa.Column("schedule", sa.String(128)),
        sa.Column("machine", sa.String(128), nullable=False, index=True),
        sa.Column("campaign", sa.String(128), nullable=False, unique=True),
        sa.Column("study", sa.JSON, nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.Column("status", sa.String(32), nullable=False, index=True),
        sa.Column("message", sa.Text),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("holder", sa.String(64)),
        sa.Column("lease_until", TIME),
        sa.Column("ended", TIME),
    )
    op.create_table(
        "fleet_schedules",
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("study", sa.JSON, nullable=False),
        sa.Column("machines", sa.JSON, nullable=False),
        sa.Column("spread", sa.Boolean, nullable=False),
        sa.Column("every_s", sa.Integer, nullable=False),
        sa.Column("next_run", TIME, nullable=False),
        sa.Column("last_run", sa.String(64)),
        sa.Column("message", sa.Text),
    )
