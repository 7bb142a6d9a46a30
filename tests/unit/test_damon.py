"""Proactive reclaim is read from DAMON's schemes and from its module; what is unknown stays unknown."""

from pathlib import Path

import pytest

from fslab.machine.advice import advise
from fslab.system import damon


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


def scheme(number: int, **changed: str) -> dict[str, str]:
    """Return the files of one scheme that evicts what was not accessed for ``number`` minutes."""
    context = f"{number}/contexts/0"
    values = {"state": "on", "operations": "paddr", "action": "pageout", "min": "12", **changed}
    files = {
        "nr_kdamonds": "1",
        f"{number}/state": values["state"],
        f"{context}/operations": values["operations"],
        f"{context}/monitoring_attrs/intervals/aggr_us": str(number * 5_000_000),
        f"{context}/schemes/0/action": values["action"],
        f"{context}/schemes/0/access_pattern/age/min": values["min"],
    }
    return {f"kernel/mm/damon/admin/kdamonds/{name}": text for name, text in files.items()}


def module(enabled: str) -> dict[str, str]:
    parameters = "module/damon_reclaim/parameters"
    return {f"{parameters}/enabled": enabled, f"{parameters}/min_age": "30000000"}


@pytest.mark.parametrize(
    ("files", "age_s"),
    [
        ({}, 0),
        (scheme(1), 60),
        (scheme(3) | scheme(2), 120),
        (scheme(1, state="off"), 0),
        (scheme(1, operations="vaddr"), 0),
        (scheme(1, action="stat"), 0),
        (scheme(1, min="?"), None),
        (module("Y"), 30),
        (module("N"), 0),
        (scheme(1) | module("Y"), 30),
    ],
)
def test_the_age_at_which_pages_are_evicted(
    tmp_path: Path, files: dict[str, str], age_s: float | None
) -> None:
    write(tmp_path, files)
    assert damon.eviction_age_s(tmp_path) == age_s


def test_it_is_unknown_to_a_user_who_may_not_read_it(tmp_path: Path) -> None:
    write(tmp_path, scheme(1))
    # Root can read any file, so it is removed.
    (tmp_path / "kernel/mm/damon/admin/kdamonds/nr_kdamonds").unlink()
    assert damon.eviction_age_s(tmp_path) is None


def test_the_module_is_unknown_to_a_user_who_may_not_read_it(tmp_path: Path) -> None:
    write(tmp_path, module("Y"))
    (tmp_path / "module/damon_reclaim/parameters/enabled").unlink()
    assert damon.eviction_age_s(tmp_path) is None


def test_advice_says_after_how_many_seconds() -> None:
    assert "for 60 s (DAMON)" in advise({"proactive_reclaim_s": 60.0})[0].what
    assert advise({"proactive_reclaim_s": 0.0}) == advise({"proactive_reclaim_s": None}) == []
