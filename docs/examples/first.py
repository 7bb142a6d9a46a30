"""Run a study from Python, and read its results as objects and as a table.

python first.py STORE [KEY=VALUE…]: settings change the study, such as trials=3.
"""

import sys
from pathlib import Path

import polars as pl

import fslab


class Progress(fslab.Observer):
    """Prints each trial when it is stored."""

    def trial_ended(self, record: fslab.TrialRecord) -> None:
        print(record.cell.workload.name, "on", record.cell.stack.name, record.status_text)


def main(url: str, settings: list[str]) -> None:
    """Plan, run, and show what came of it."""
    fslab.install_signal_handlers()  # so that SIGTERM also removes images and mounts
    study = fslab.load(Path(__file__).with_name("first.yaml"), settings)
    plan = fslab.plan_of(study)
    print(f"{len(plan.cells)} cells, about {plan.expected_s:.0f} s")
    for refusal in plan.refused:
        sys.exit(refusal)

    with fslab.open_store(url) as store:
        results = fslab.run(study, store, observer=Progress())
        print(results.conclusion().sentence)
        for standing in results.conclusion().standings:
            print(standing.workload, standing.metric, standing.certainty, *standing.labels)

        rates = results.frame().filter(kind="metric", status="ok")
        print(rates.group_by("workload", "name", "stack").agg(pl.col("value").median()))

        for explanation in results.explanations()[:3]:
            print(explanation.text)
        print(results.write_report(f"{results.id}.html"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
