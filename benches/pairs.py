"""What comparisons with work by hand have in common: one stack, pairs of runs in random order, and their ratios."""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from fslab.campaign import campaign as campaigns
from fslab.campaign import workspace as workspaces
from fslab.campaign.watch import Watch
from fslab.cell import MediumSpec, StackSpec
from fslab.machine import tuning
from fslab.probes import SnapshotMoment
from fslab.stats.interval import median, median_interval
from fslab.storage import Workspace, stack
from fslab.storage.mounted_stack import Stack
from fslab.storage.parsed_stack import parsed_stack
from fslab.system import proc

WAYS = ("fslab", "hand")


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


@contextmanager
def built(arguments: argparse.Namespace, size: str) -> Iterator[tuple[Workspace, Stack]]:
    """Build a stack, and take it down at the end. A modelled disk has its own times from then on. Idle CPUs stay ready:
    the time to wake them up differs from run to run. ``size``: the memory that it takes."""
    model = {"profile": "ssd-sata", "size": "16g", "memory": size}
    options = model if arguments.medium == "virtual" else {"size": size}
    medium = MediumSpec(name="m", type=arguments.medium, options=options)
    spec = StackSpec(name=arguments.filesystem, medium=medium, filesystem=arguments.filesystem)
    with workspaces.opened(campaigns.new_id(), frozenset()) as workspace, ExitStack() as undo:
        undo.enter_context(tuning.tuned({"cpu_dma_latency": "auto"}, workspace.journal))
        up = stack.build(spec, workspace, undo, slot="m", make=True)
        disk = parsed_stack(spec)
        undo.enter_context(disk.medium.running(disk.medium_options, workspace, "m"))
        yield workspace, up


def compare(name: str, pairs: int, run: Callable[[str, int], Mapping[str, float]], *, most: float) -> bool:
    """Run both ways in each pair, and print the ratios of their figures, fslab ÷ by hand, with the median's 90 %
    interval. Return whether each median ratio is within 1 ± ``most``."""
    ratios: dict[str, list[float]] = {}
    for pair in range(pairs):
        found = {way: run(way, pair) for way in random.sample(WAYS, 2)}
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


def probed(workspace: Workspace, up: Stack, argv: tuple[str, ...]) -> proc.Completed:
    """Run a command as a trial does."""
    watch = Watch(up)
    try:
        watch.snapshot(SnapshotMoment.BEFORE)
        done = workspace.run("run", argv, cwd=up.work, watch=watch.look, accounted=True)
        watch.snapshot(SnapshotMoment.END)
    finally:
        watch.close()
    return done
