"""Proactive reclaim by DAMON: after how many seconds without access the kernel evicts a page. Only reads.

Some virtual machines use it so that unused memory goes back to their host. The page cache then loses what a trial read
or wrote a minute ago, although memory is free.

Source: Documentation/admin-guide/mm/damon/usage.rst (schemes in sysfs) and reclaim.rst (the module damon_reclaim).
"""

from collections.abc import Iterator
from pathlib import Path

from fslab.system import sysfs

US_PER_S = 1_000_000


def eviction_age_s(sys: Path = sysfs.SYS) -> float | None:
    """Return the seconds without access after which a page is evicted; 0 if no page is. None if it is unknown.

    Only root can read it; in a kernel without DAMON no page is evicted.
    """
    threads, module = sys / "kernel/mm/damon/admin/kdamonds", sys / "module/damon_reclaim/parameters"
    for directory, file in ((threads, "nr_kdamonds"), (module, "enabled")):
        if directory.is_dir() and sysfs.text(directory / file) is None:
            return None
    ages = [*_ages_of_schemes(threads), *_age_of_module(module)]
    known = [age for age in ages if age is not None]
    return min(known, default=0.0) if len(known) == len(ages) else None


def _ages_of_schemes(threads: Path) -> Iterator[float | None]:
    """Yield the age of each scheme that evicts pages of physical memory, which includes the page cache."""
    for context in threads.glob("*/contexts/*"):
        aggregation_us = sysfs.number(context / "monitoring_attrs/intervals/aggr_us")
        running = sysfs.text(context.parents[1] / "state") == "on"
        if not running or sysfs.text(context / "operations") != "paddr":
            continue
        for scheme in context.glob("schemes/*"):
            age = sysfs.number(scheme / "access_pattern/age/min")
            if sysfs.text(scheme / "action") == "pageout":
                yield None if age is None or aggregation_us is None else age * aggregation_us / US_PER_S


def _age_of_module(parameters: Path) -> Iterator[float | None]:
    age_us = sysfs.number(parameters / "min_age")
    if sysfs.text(parameters / "enabled") in {"Y", "1"}:
        yield None if age_us is None else age_us / US_PER_S
