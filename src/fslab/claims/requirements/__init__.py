"""The interface of requirements: what must be true of the cells that decide a claim. One file per subject.

Figures answer the question of a publication only where the same thing bounds them. A requirement is pure: it judges
facts of trials (``_facts``), and reads nothing.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

from fslab.claims.model import Unmet
from fslab.claims.requirements._facts import CellFacts, Compared, Lever
from fslab.registry import Registry

__all__ = ["REGISTRY", "CellFacts", "Compared", "Lever", "Requirement"]


ON_HOST = "--on host"


class Requirement(ABC):
    """One requirement: a number that must be at least or at most ``limit``.

    ``name`` is that of the class, unless it sets another. ``at_least``: the number must not be smaller, else not
    larger; a claim can set the limit, and the sense of ``either``. ``summary``: what is to be known, as in "it is
    unknown how …". ``short``: why it is not met, in a table. ``remedy``: the option of ``fslab run`` with which it may
    be met. ``by_software``: what the software does decides whether it is met, and not only machine and amounts.
    ``certain``: the stacks alone decide, whatever a run shows; it is told first.
    """

    name: str
    summary: ClassVar[str]
    short: ClassVar[str]
    limit: ClassVar[float]
    at_least: ClassVar[bool] = True
    either: ClassVar[bool] = False
    remedy: ClassVar[str | None] = ON_HOST
    by_software: ClassVar[bool] = False
    certain: ClassVar[bool] = False

    @abstractmethod
    def measure(self, compared: Compared) -> float | None:
        """Return the number for the cells of a part; None if it is unknown. Pure."""

    @abstractmethod
    def words(self, compared: Compared, value: float) -> str:
        """Return why the requirement is not met, as a clause without a full stop."""

    def implied(self, compared: Compared) -> bool:  # noqa: ARG002
        """Return whether these cells must meet it although the claim does not say so; unknown is accepted."""
        return False

    def try_(self, compared: Compared) -> str | None:
        """Return the remedy, if it is one for these cells."""
        return self.remedy if self.remedy != ON_HOST or compared.in_guest else None

    def unmet(
        self, compared: Compared, *, limit: float | None = None, at_least: bool | None = None, declared: bool
    ) -> Unmet | None:
        """Return why the cells do not meet it; None if they do. ``limit``, ``at_least``: as the claim sets them."""
        value = self.measure(compared)
        least = self.at_least if at_least is None else at_least
        wanted = self.limit if limit is None else limit
        if value is None:
            if not declared:
                return None
        elif value >= wanted if least else value <= wanted:
            return None
        return Unmet(
            requirement=self.name,
            what=f"it is unknown {self.summary}" if value is None else self.words(compared, value),
            try_=self.try_(compared),
            by_software=self.by_software and value is not None,
        )


REGISTRY: Registry[Requirement] = Registry("requirement", __name__, Requirement, by_subject=True)
