"""Resolves a claim into the parts that must hold among the cells of a study. Pure.

What these cells lack is described in words, for a mistake of the study or for "not measured".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise, product
from os.path import commonprefix
from typing import assert_never

from fslab.cell import Cell, grouped
from fslab.claims import metric_units
from fslab.claims.language import (
    EACH,
    Condition,
    Extreme,
    Gains,
    Level,
    Order,
    RatioForm,
    Statement,
    Term,
    Tie,
    Varies,
    names_in,
)
from fslab.claims.parts import (
    BETTER,
    WORSE,
    Bounds,
    CellFigure,
    Part,
    Quotient,
    Spread,
    better,
    mean_of,
    quotient,
    within,
)
from fslab.claims.schema import Claim
from fslab.claims.scope import Scope, kind


@dataclass(frozen=True, kw_only=True)
class Resolver:
    """Resolves one statement among the cells of a scope.

    ``missing``: what the cells lack, in words. ``meant``: all cells that the statement's words mean, by identity.
    """

    claim: Claim
    statement: Statement
    scope: Scope
    missing: list[str] = field(default_factory=list)
    meant: dict[int, Cell] = field(default_factory=dict)

    @cached_property
    def _everywhere(self) -> list[Cell]:
        region = self.statement.region
        return [cell for cell in self.scope.cells if all(self.scope.meets(cell, one) for one in region)]

    @cached_property
    def _on(self) -> list[Cell]:
        """The cells of the claim's workloads that have the metric of the claim."""
        found = self.scope.on(self.claim.on, self._everywhere)
        return [cell for cell in found if metric_units.metric(cell.workload, self.claim.metric)]

    @cached_property
    def _nothing(self) -> str | None:
        """That no cell of any stack is in the region of the statement, in words."""
        region = self.statement.region
        return f"nothing is measured with {', '.join(map(str, region))}" if region and not self._on else None

    def parts(self) -> list[Part]:
        """Return all parts. Afterwards, ``missing`` describes what the cells lack for further parts."""
        found = list(self._of_form())
        if not found and not self.missing and self._nothing:
            self.missing.append(self._nothing)
        if not self.statement.overall:
            return found
        quotients = [part for part in found if isinstance(part, Quotient)]
        if len(quotients) < len(found):
            self.missing.append("'overall' cannot be combined with a comparison of spreads ('varies …')")
            return []
        alike = grouped(quotients, lambda part: (part.over, part.under))
        return [mean_of(group, f"mean of {len(group)}") for group in alike.values()]

    def _of_form(self) -> Iterator[Part]:  # noqa: C901 - one case per form
        form = self.statement.form
        match form:
            case Order():
                for above, below in pairwise(form.groups):
                    for one, other in product(above, below):
                        yield from self._pair(one, other)
            case RatioForm():
                yield from self._pair(form.over, form.under, metric_units.bounds(form.range))
            case Level():
                yield from self._level(form)
            case Tie():
                bounds = within(form.within)
                for one, other in combinations(form.terms, 2):
                    yield from self._pair(one, other, bounds)
            case Extreme():
                yield from self._extreme(form)
            case Varies():
                yield from self._varies(form)
            case Gains():
                yield from self._gains(form)
            case _:
                assert_never(form)

    def _pair(self, one: Term, other: Term, bounds: Bounds | None = None) -> Iterator[Part]:
        for names, cells in self._aligned([(one, ()), (other, ())]):
            pair = self._figures(cells)
            if pair is not None and pair[0].key == pair[1].key:
                self.missing.append(f"{names[0]} / {names[1]} compares {cells[0].stack.name} with itself")
            elif pair is not None:
                where = self._where(cells)
                yield (
                    quotient(pair[0], pair[1], (names[0], names[1]), bounds, where)
                    if bounds
                    else better(pair[0], pair[1], (names[0], names[1]), where)
                )

    def _level(self, form: Level) -> Iterator[Part]:
        for names, cells in self._aligned([(form.term, ())]):
            found = self._figures(cells)
            if found is None:
                continue
            bounds = metric_units.bounds(form.range, found[0].metric.unit)
            weights = ((found[0], 1.0),)
            yield Quotient(over=names[0], under="", where=self._where(cells), weights=weights, bounds=bounds)

    def _extreme(self, form: Extreme) -> Iterator[Part]:
        named = {term.name for term in form.terms}
        others = form.among or tuple(Term(name=name) for name in self._kinds() if name not in named)
        for term in form.terms:
            for other in others:
                if other.name in named:
                    continue
                # A condition on one stack applies to all stacks that it is compared with.
                alike = other if other.conditions else replace(other, conditions=term.conditions)
                self.meant.update({id(cell): cell for cell in self.scope.matching(other, self._on)})
                pair = (term, alike) if form.first else (alike, term)
                yield from self._pair(*pair)

    def _varies(self, form: Varies) -> Iterator[Part]:
        for term in self._each(form.term, form.other):
            if form.within is not None:
                yield from self._within(form, term)
                continue
            for other in self._each(form.other or Term(name=EACH), term):
                yield from self._spreads(form, term, other)

    def _within(self, form: Varies, term: Term) -> Iterator[Part]:
        """Yield all pairs, each of which must be within the share."""
        share = form.within or 0.0
        for cells in self._series(term, form.keys):
            found = self._figures(cells)
            if found is None:
                continue
            where = self._where(cells, form.keys)
            for one, other in combinations(found, 2):
                names = tuple(self._value(term, figure.cell, form.keys) for figure in (one, other))
                yield quotient(one, other, (names[0], names[1]), within(share), where)

    def _spreads(self, form: Varies, term: Term, other: Term) -> Iterator[Part]:
        one_side, other_side = self._matching(term), self._matching(other)
        ours = self.scope.series(one_side, form.keys, other_side)
        theirs = self.scope.series(other_side, form.keys, one_side)
        if len(ours) == len(theirs) == 1:
            pairs = [(*ours.values(), *theirs.values())]
        else:
            pairs = [(cells, theirs[key]) for key, cells in ours.items() if key in theirs]
        if not pairs:
            self.missing.append(f"{term.name} and {other.name} do not both vary in {' and '.join(form.keys)}")
        for one, another in pairs:
            found, against = self._figures(one), self._figures(another)
            if found is not None and against is not None:
                yield Spread(
                    over=term.name, under=other.name, where=self._where(one, form.keys), ones=tuple(found),
                    others=tuple(against), more=form.more,
                )  # fmt: skip

    def _gains(self, form: Gains) -> Iterator[Part]:
        wanted = [(term, ends) for term in (form.one, form.other) for ends in (form.end, form.start)]
        for names, cells in self._aligned(wanted):
            found = self._figures(cells)
            if found is None:
                continue
            turn = metric_units.sign(found[0].metric.better)
            weights = tuple(zip(found, (turn, -turn, -turn, turn), strict=True))
            yield Quotient(
                over=f"gain of {names[0]}", under=f"of {names[2]}", where=self._where(cells), weights=weights,
                bounds=BETTER if form.more else WORSE,
            )  # fmt: skip

    def _matching(self, term: Term, more: Sequence[Condition] = ()) -> list[Cell]:
        found = self.scope.matching(term, self._everywhere if term.workload else self._on, more)
        if not found:
            conditions = ", ".join(map(str, (*more, *self.statement.region)))
            none = f"there is no {term}" + (f" with {conditions}" if conditions else "")
            self.missing.append(self._nothing or none)
        self.meant.update({id(cell): cell for cell in found})
        return found

    def _aligned(
        self, wanted: Sequence[tuple[Term, Sequence[Condition]]]
    ) -> Iterator[tuple[list[str], tuple[Cell, ...]]]:
        """Yield names and cells that are equal in everything left open; ``each`` stands for each stack in turn, but not
        for one that the statement names."""
        named = {term.name for term in names_in(self.statement)}
        each = [name for name in self._kinds() if name not in named]
        kinds = each if any(term.name == EACH for term, _ in wanted) else [EACH]
        for name in kinds:
            terms = [(_named(term, name), more) for term, more in wanted]
            groups = [self._matching(term, more) for term, more in terms]
            if not all(groups):
                continue
            before = len(self.missing)
            found = list(self.scope.align(groups))
            if not found and len(self.missing) == before:
                what = " and ".join(str(term) for term, _ in terms)
                self.missing.append(
                    f"{what} are never measured with all else alike: write more conditions in brackets"
                )
            for cells in found:
                yield [str(term) for term, _ in terms], cells

    def _series(self, term: Term, keys: Sequence[str]) -> list[list[Cell]]:
        found = list(self.scope.series(self._matching(term), keys).values())
        if not found:
            self.missing.append(f"{term.name} has fewer than two values of {' and '.join(keys)} here")
        return found

    def _each(self, term: Term, beside: Term | None = None) -> list[Term]:
        """Return the terms that ``term`` stands for: with ``each``, all stacks except ``beside``."""
        if term.name != EACH:
            return [term]
        return [_named(term, name) for name in self._kinds() if beside is None or name != beside.name]

    def _kinds(self) -> list[str]:
        return list(dict.fromkeys(kind(cell) for cell in self._on))

    def _figures(self, cells: Sequence[Cell]) -> list[CellFigure] | None:
        """Return the claim's metric on each cell; None, with an entry in ``missing``, if a cell does not have it."""
        found = []
        for cell in cells:
            metric = metric_units.metric(cell.workload, self.claim.metric)
            if metric is None:
                self.missing.append(f"{cell.workload.name} has no metric '{self.claim.metric}'")
                return None
            found.append(CellFigure(cell=cell, metric=metric))
        return found

    def _value(self, term: Term, cell: Cell, keys: Sequence[str]) -> str:
        values = ",".join(str(self.scope.of(cell).get(key)) for key in keys)
        return f"{term.name}[{values}]"

    def _where(self, cells: Sequence[Cell], but: Sequence[str] = ()) -> str:
        """Return workload and set-up, as far as they are needed to identify the part."""
        names = list(dict.fromkeys(cell.workload.name for cell in cells))
        bases = list(dict.fromkeys(name.partition("[")[0] for name in names))
        workload = names[0] if len(names) == 1 else bases[0] if len(bases) == 1 else ""
        if but and len(bases) > 1:  # otherwise the terms name them
            workload = f"{commonprefix(bases)}*".lstrip("*")  # noqa: RUF071 - of letters
        names_of_setup = {"layout", "disks", "medium", *cells[0].stack.layout_options}
        told = sorted(self.scope.varying_of(kind(cells[0])) & names_of_setup)
        values = [
            f"{name} {self.scope.of(cells[0])[name]}" for name in told if name not in but and name != "layout"
        ]
        layout = [cells[0].stack.layout] if "layout" in told else []
        return ", ".join([*([workload] if workload else []), *layout, *values])


def _named(term: Term, name: str) -> Term:
    """Return the term, with ``each`` replaced by ``name``."""
    return replace(term, name=name) if term.name == EACH else term
