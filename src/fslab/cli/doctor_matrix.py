"""The part of ``fslab doctor`` that shows which file systems and layouts each machine can build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from fslab.feasibility import MatrixEntry

HAS_NO = " has no "
# The meaning of the words in the table. Each names the first thing that is missing.
MEANING = {
    "machine": "the guest cannot start here",
    "kernel": "the kernel does not have it",
    "tool": "a program is not installed",
    "root": "needs root",
    "not built": "fslab cannot make it",
}


def show(entries: Sequence[MatrixEntry], versions: Mapping[str, str], screen: Console) -> None:
    """Print the table, and below it what is missing on each machine, with the command that installs it.

    ``versions``: the versions of the programs of each file system and layout, by its name.
    """
    from rich.table import Table
    from rich.text import Text

    from fslab.feasibility import Lack

    machines = list(dict.fromkeys(entry.machine for entry in entries))
    styles = {Lack.NOTHING: "green", Lack.REFUSED: "dim"}
    for kind in dict.fromkeys(entry.kind for entry in entries):
        table = Table(box=None, pad_edge=False)
        for title in (kind, *(f"on {machine}" for machine in machines), "programs"):
            table.add_column(Text(title))
        for name in dict.fromkeys(entry.name for entry in entries if entry.kind == kind):
            of = {entry.machine: entry.lack for entry in entries if (entry.kind, entry.name) == (kind, name)}
            words = (Text(of[machine].value, style=styles.get(of[machine], "red")) for machine in machines)
            table.add_row(Text(name, style="bold"), *words, Text(versions.get(name, ""), style="dim"))
        screen.print(table)
    used = [
        f"{lack}: {words}" for lack, words in MEANING.items() if any(entry.lack == lack for entry in entries)
    ]
    if used:
        screen.print(" · ".join(used), style="dim", markup=False, soft_wrap=True)
    for line in lines(entries):
        screen.print(line, markup=False, soft_wrap=True)


def lines(entries: Sequence[MatrixEntry]) -> Iterator[str]:
    """Yield what is missing, without duplicates, and the commands for machines that are not ready."""
    from fslab.feasibility import Lack

    kernels: dict[str, dict[str, None]] = {}
    others: dict[str, None] = {}
    for entry in entries:
        what = entry.needs[0] if entry.needs else ""
        if entry.lack is Lack.KERNEL:
            kernel, _, name = what.partition(HAS_NO)
            kernels.setdefault(f"{entry.machine}: {kernel}", {})[name] = None
        elif entry.lack is Lack.REFUSED:
            others[f"{entry.name}: {what}"] = None
        elif entry.lack is Lack.MACHINE:
            others[f"{entry.machine}: {what}"] = None
            others |= {f"→ {remedy}": None for remedy in entry.remedies}
    yield from (f"{kernel}{HAS_NO}{', '.join(names)}" for kernel, names in kernels.items())
    yield from others
