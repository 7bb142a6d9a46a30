"""What comparisons with work by hand have in common: pairs of runs in random order, each pair on a new file system, and
their ratios."""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from fslab.campaign import cleanup as workspaces
from fslab.campaign import trial_loop
from fslab.campaign.probing import Watch
from fslab.cell import MediumSpec, StackSpec
from fslab.machine import tuning
from fslab.probes import SnapshotMoment
from fslab.stats.median import median, median_interval
from fslab.storage import Workspace, stack
from fslab.storage.mounted_stack import Stack
from fslab.storage.parsed_stack import parsed_stack
from fslab.system import proc

WAYS = ("fslab", "hand")
_SLOT = "m"
_MADE_MIB = 320  # XFS takes no less than 300 MB; on 16 GiB, mkfs and a journal in use write up to 150 MB


def parser(description: str | None, *, pairs: int) -> argparse.ArgumentParser:
    """Return a parser of the options that all of them have."""
    found = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--pairs", type=int, default=pairs)
    found.add_argument("--filesystem", default="ext4")
    media = ["ram", "loop", "virtual"]
    found.add_argument("--medium", default="ram", choices=media, help="virtual: a model of a SATA SSD")
    found.add_argument("--runtime", default="2s")
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """Where pairs run: a medium with room for files of ``needed_bytes`` on each file system."""

    workspace: Workspace
    spec: StackSpec

    @property
    def scratch(self) -> Path:
        """A directory elsewhere than on the medium."""
        found = self.workspace.runtime / "scratch"
        found.mkdir(exist_ok=True)
        return found

    @contextmanager
    def built(self) -> Iterator[Stack]:
        """Make a file system, as for a trial, and unmount it at the end. A modelled disk is empty before."""
        disk = parsed_stack(self.spec)
        disk.medium.renew(disk.medium_options, self.workspace, _SLOT, in_guest=False)
        with ExitStack() as undo:
            yield stack.build(self.spec, self.workspace, undo, slot=_SLOT, make=True)

    def real_time(self) -> AbstractContextManager[None]:
        """Give a modelled disk its own times. Before, it answers as fast as it can, as in a trial."""
        disk = parsed_stack(self.spec)
        return disk.medium.running(disk.medium_options, self.workspace, _SLOT)


@contextmanager
def opened(arguments: argparse.Namespace, needed_bytes: int) -> Iterator[Bench]:
    """Open a workspace. Idle CPUs stay ready: the time to wake them up differs from run to run. ``needed_bytes``: the
    files of one pair."""
    size = f"{_MADE_MIB + -(-needed_bytes >> 20)}m"
    model = {"profile": "ssd-sata", "size": "16g", "memory": size}
    options = model if arguments.medium == "virtual" else {"size": size}
    medium = MediumSpec(name="m", type=arguments.medium, options=options)
    spec = StackSpec(name=arguments.filesystem, medium=medium, filesystem=arguments.filesystem)
    with (
        workspaces.opened_workspace(trial_loop.new_id(), frozenset()) as workspace,
        tuning.tuned({"cpu_dma_latency": "auto"}, workspace.journal),
    ):
        yield Bench(workspace=workspace, spec=spec)


def compare(
    name: str,
    pairs: int,
    bench: Bench,
    run: Callable[[Stack, str, int], Mapping[str, float]],
    *,
    most: float,
) -> bool:
    """Run both ways in each pair, and print the ratios of their figures, fslab ÷ by hand, with the median's 90 %
    interval. Return whether each median ratio is within 1 ± ``most``."""
    ratios: dict[str, list[float]] = {}
    for pair in range(pairs):
        with bench.built() as up:
            found = {way: run(up, way, pair) for way in random.sample(WAYS, 2)}
        for figure, by_hand in found["hand"].items():
            ratios.setdefault(figure, []).append(found["fslab"][figure] / by_hand)
            told = f"{found['fslab'][figure]:.5g} and {by_hand:.5g} by hand: {ratios[figure][-1]:.3f}"
            print(f"  {name} {figure} {pair + 1}: {told}", flush=True)
    good = True
    for figure, every in ratios.items():
        interval, middle = median_interval(every, coverage=0.9), median(every) or 0.0
        span = f"{interval.low:.3f}–{interval.high:.3f}" if interval else "too few pairs"
        print(f"{name} {figure}, {len(every)} pairs: median ratio {middle:.3f} ({span})", flush=True)
        good = good and abs(middle - 1) <= most
    return good


def probed(up: Stack, argv: tuple[str, ...]) -> proc.Completed:
    """Run a command as a trial does."""
    watch = Watch(up)
    try:
        watch.snapshot(SnapshotMoment.BEFORE)
        done = up.workspace.run("run", argv, cwd=up.work, watch=watch.look, accounted=True)
        watch.snapshot(SnapshotMoment.END)
    finally:
        watch.close()
    return done
