"""The first schema: campaigns, cells, trials, and the tables that belong to a trial. Trials cannot be changed."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
IMMUTABLE = ("trials", "metrics", "probes", "warnings", "raw_output")


def upgrade() -> None:
    """Create all tables, and the triggers that prevent changes of trials."""
    _campaigns_and_cells()
    _trials()
    for name in ("metrics", "probes"):
        _figures(name)
    _warnings_and_output()
    for name in IMMUTABLE:
        _forbid_changes(name)


def _campaigns_and_cells() -> None:
    op.create_table(
        "campaigns",
        sa.Column("number", ROW_ID, primary_key=True),
        sa.Column("id", sa.String(128), nullable=False, unique=True),
        sa.Column("study_id", sa.Text, nullable=False),
        sa.Column("study_title", sa.Text, nullable=False),
        sa.Column("study_source", sa.Text, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("seed", sa.Text, nullable=False),
        sa.Column("trials", sa.Integer, nullable=False),
        sa.Column("machine", sa.JSON, nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
    )
    op.create_table(
        "cells",
        sa.Column("number", ROW_ID, primary_key=True),
        sa.Column("campaign", ROW_ID, sa.ForeignKey("campaigns.number"), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("stack", sa.Text, nullable=False),
        sa.Column("filesystem", sa.Text),
        sa.Column("medium", sa.Text, nullable=False),
        sa.Column("workload", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.UniqueConstraint("campaign", "id", name="cell_once_per_campaign"),
    )


def _trials() -> None:
    op.create_table(
        "trials",
        sa.Column("number", ROW_ID, primary_key=True),
        sa.Column("cell", ROW_ID, sa.ForeignKey("cells.number"), nullable=False),
        sa.Column("block", sa.Integer, nullable=False),
        sa.Column("seed", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("failure", sa.String(64)),
        sa.Column("error", sa.Text),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.Column("duration_s", sa.Float(53), nullable=False),
        sa.Column("provenance", sa.JSON, nullable=False),
        sa.UniqueConstraint("cell", "block", name="trial_once_per_block"),
    )


def _figures(name: str) -> None:
    op.create_table(
        name,
        sa.Column("trial", ROW_ID, sa.ForeignKey("trials.number"), primary_key=True),
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("value", sa.Float(53)),
        sa.Column("unit", sa.String(16), nullable=False),
    )


def _warnings_and_output() -> None:
    op.create_table(
        "warnings",
        sa.Column("trial", ROW_ID, sa.ForeignKey("trials.number"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("severity", sa.String(16), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("hint", sa.Text),
        sa.Column("data", sa.JSON, nullable=False),
    )
    op.create_table(
        "raw_output",
        sa.Column("trial", ROW_ID, sa.ForeignKey("trials.number"), primary_key=True),
        sa.Column("name", sa.String(255), primary_key=True),
        sa.Column("zlib", sa.LargeBinary, nullable=False),
    )


def _forbid_changes(name: str) -> None:
    """Create the triggers of a table. In other databases than these two, only the program itself prevents changes."""
    match op.get_bind().dialect.name:
        case "sqlite":
            for verb in ("update", "delete"):
                op.execute(
                    f"CREATE TRIGGER {name}_no_{verb} BEFORE {verb.upper()} ON {name} "
                    "BEGIN SELECT RAISE(ABORT, 'trials are immutable'); END"
                )
        case "postgresql":
            op.execute(
                "CREATE OR REPLACE FUNCTION fslab_immutable() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'trials are immutable'; END $$"
            )
            op.execute(
                f"CREATE TRIGGER {name}_immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} "
                "FOR EACH STATEMENT EXECUTE FUNCTION fslab_immutable()"
            )
