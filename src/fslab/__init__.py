"""fslab: which Linux file system, with which options, suits a workload on this machine, and with what confidence.

    import fslab

    study = fslab.load("quick", ["trials=3"])
    print(fslab.plan_of(study).expected_s)
    with fslab.open_store("results.sqlite") as store:
        results = fslab.run(study, store)
        print(results.conclusion().sentence)
        table = results.frame()

Names are imported at their first use. ``import fslab`` itself imports no other module of fslab.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fslab.api.comparisons import compare as compare
    from fslab.api.plans import plan as plan_of
    from fslab.api.results import CampaignResults as CampaignResults
    from fslab.api.results import ResultStore as ResultStore
    from fslab.api.results import open_store as open_store
    from fslab.api.results import resume as resume
    from fslab.api.results import run as run
    from fslab.campaign.cleanup import clean_all as clean
    from fslab.campaign.observer import Observer as Observer
    from fslab.errors import FslabError as FslabError
    from fslab.study.load import load as load
    from fslab.study.model import Study as Study
    from fslab.study.shipped import ids as shipped_studies
    from fslab.system.signals import install as install_signal_handlers
    from fslab.trial_record import TrialRecord as TrialRecord

    __version__: str

_HOMES = {
    "CampaignResults": "fslab.api.results:CampaignResults",
    "FslabError": "fslab.errors:FslabError",
    "Observer": "fslab.campaign.observer:Observer",
    "ResultStore": "fslab.api.results:ResultStore",
    "Study": "fslab.study.model:Study",
    "TrialRecord": "fslab.trial_record:TrialRecord",
    "clean": "fslab.campaign.cleanup:clean_all",
    "compare": "fslab.api.comparisons:compare",
    "install_signal_handlers": "fslab.system.signals:install",
    "load": "fslab.study.load:load",
    "open_store": "fslab.api.results:open_store",
    "plan_of": "fslab.api.plans:plan",
    "resume": "fslab.api.results:resume",
    "run": "fslab.api.results:run",
    "shipped_studies": "fslab.study.shipped:ids",
}

__all__ = [
    "CampaignResults", "FslabError", "Observer", "ResultStore", "Study", "TrialRecord", "__version__", "clean",
    "compare", "install_signal_handlers", "load", "open_store", "plan_of", "resume", "run", "shipped_studies",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name at its first use."""
    if name == "__version__":
        return _version()
    if name not in _HOMES:
        raise AttributeError(f"module 'fslab' has no attribute '{name}'")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - not for `--help`

    try:
        return version("fslab")
    except PackageNotFoundError:  # a source tree that is not installed
        return "0+unknown"
