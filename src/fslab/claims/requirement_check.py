"""Evaluates all claims of a study together, each by the parts whose cells meet its requirements. Pure.

At most 5 % of the verdicts given are expected to be false. The level of each claim follows Benjamini & Hochberg's
step-up procedure (J. R. Statist. Soc. B 57 (1995) 289): with r verdicts among m claims, each is tested at r/m of the
error. A claim is a family whose parts share that error (``evaluate``): selective inference on families, Benjamini &
Bogomolov, J. R. Statist. Soc. B 76 (2014) 297. This loses less power than Holm's correction over all parts of all
claims, and almost none if all but a few claims are clear.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from fslab.analysis.usable_trials import is_usable
from fslab.cell import Cell
from fslab.claims import verdict as verdicts
from fslab.claims.campaign_estimates import Trials
from fslab.claims.claim_words import answer_words
from fslab.claims.evaluate import Evaluator
from fslab.claims.model import DECISIVE, UNTESTED, ClaimAnswer, ClaimVerdict, PartFinding, Unmet
from fslab.claims.parts import CellFigure, Part
from fslab.claims.requirements import REGISTRY, CellFacts, Compared, Demand, Lever
from fslab.claims.verdict import seems_to_fail, verdict_of
from fslab.stats.median import median_interval
from fslab.trial_record import WHOLE, RunPart, TrialRecord
from fslab.units import Unit
from fslab.workloads import traits_of

_HOST, _UML, _TCG = "host", "uml", "tcg"


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimParts:
    """One claim as its parts. ``missing``: parts without cells. ``margin``: the smallest difference of interest.
    ``demands``, ``lever``: what it requires of the cells that decide it."""

    parts: Sequence[Part]
    missing: Sequence[str]
    margin: float
    demands: Sequence[Demand] = ()
    lever: Lever | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What is known beside the trials. ``printed``: the publication's figures by cell id and metric name.

    ``same_machine``: machine, memory, disks and amounts are the publication's.
    """

    printed: Mapping[tuple[str, str], tuple[float, ...]] = field(default_factory=dict)
    same_machine: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RequirementCheck:
    """Judges parts by trials. ``others``: those of other campaigns; facts are medians of all. ``sides``: a cache."""

    trials: Trials
    others: Sequence[Trials] = ()
    setting: Setting = field(default_factory=Setting)
    sides: dict[tuple[str, str], CellFacts] = field(default_factory=dict, repr=False)

    def unmet(self, part: Part, demands: Sequence[Demand], lever: Lever | None) -> Unmet | None:
        """Return the first requirement that a part does not meet: those of the claim, then those that are implied.

        None too if there are no figures: then there is nothing to judge.
        """
        every = (self.trials, *self.others)
        if any(all(each.why_none(figure) for each in every) for figure in part.figures):
            return None
        sides = {figure.key: self.side(figure) for figure in part.figures}
        return next(unmet_of(compared_of(part, [*sides.values()], lever), demands), None)

    def side(self, figure: CellFigure) -> CellFacts:
        if figure.key not in self.sides:
            self.sides[figure.key] = self._made(figure)
        return self.sides[figure.key]

    def _made(self, figure: CellFigure) -> CellFacts:
        cell = figure.cell
        trials, known = (self.trials, *self.others), known_of(figure)
        records = [record for each in trials for record in each.by_cell.get(cell.id, []) if is_usable(record)]
        values = [value for each in trials for value in each.values(figure).values()]
        interval = median_interval(values)
        found = [part for record in records if (part := _part(record, figure.metric.name))]
        machine = records[0].provenance.machine if records else {}
        observed = [record.provenance.observed for record in records]
        return replace(
            known,
            value=_median(values),
            span=(interval.low, interval.high) if interval else None,
            printed=self.setting.printed.get(figure.key, ()),
            wait=None if _only_in_requests(figure) else _median(each.wait for each in found),
            seconds=_median(each.seconds for each in found),
            read_bytes=_median(each.read_bytes for each in found),
            written_bytes=_median(each.written_bytes for each in found),
            flushes=_median(each.flushes for each in found),
            run_flushes=_median(
                parts[WHOLE].flushes for record in records if WHOLE in (parts := record.provenance.parts)
            ),
            cpus=machine.get("cpus"),
            memory_bytes=machine.get("memory_bytes"),
            emulated=known.emulated or machine.get("accelerator") == _TCG,
            options=next(
                (each["options_in_effect"] for each in observed if "options_in_effect" in each), None
            ),
            checksum=next((each["checksum"][0] for each in observed if each.get("checksum")), None),
            warnings=frozenset(warning.kind for record in records for warning in record.validity),
            fixed_share=self._fixed_share(figure),
        )

    def _fixed_share(self, figure: CellFigure) -> float | None:
        """Return the share of the time of one file that does not depend on its size: a line through two sizes."""
        if figure.metric.unit is not Unit.BYTES_PER_SECOND:
            return None
        own = self._point(figure)
        others = [
            point
            for records in self.trials.by_cell.values()
            if differs_in_size(records[0].cell, figure.cell)
            and (point := self._point(CellFigure(cell=records[0].cell, metric=figure.metric)))
        ]
        if own is None or not others:
            return None
        other = max(others, key=lambda point: abs(point[0] - own[0]))
        per_byte = (other[1] - own[1]) / (other[0] - own[0])
        return max(0.0, 1 - per_byte * own[0] / own[1])

    def _point(self, figure: CellFigure) -> tuple[int, float] | None:
        """Return the size of a file, and the seconds that it takes."""
        rate = _median(self.trials.values(figure).values())
        size_bytes = traits_of(figure.cell.workload).working_set_bytes
        if not rate or size_bytes is None:
            return None
        return size_bytes, size_bytes / rate

    def answer(self, strict: Evaluator, claim: ClaimParts, unmet: Sequence[Unmet | None]) -> ClaimAnswer:
        """Return the answer to a claim by the parts that meet its requirements (``unmet``: None).

        A tested part that is not replicated decides the claim. Else it is not tested unless all its parts are.
        """
        parts, missing, margin = claim.parts, claim.missing, claim.margin
        tested = [part for part, lacking in zip(parts, unmet, strict=True) if lacking is None]
        answer = strict.answer(tested, missing, margin=margin)
        if len(tested) == len(parts):
            return answer
        left = iter(answer.findings)
        findings = tuple(
            next(left)
            if lacking is None
            else self._untested(strict.finding(part, margin, len(parts)), lacking)
            for part, lacking in zip(parts, unmet, strict=True)
        )
        why = tuple(one for one, _ in Counter(one for one in unmet if one is not None).most_common())
        changes: dict[str, object] = {"parts": len(parts), "findings": findings, "unmet": why}
        if answer.verdict in DECISIVE or (
            answer.verdict is ClaimVerdict.OPEN and _may_fail(tested, answer, margin)
        ):
            return answer.model_copy(update=changes)
        verdict = verdicts.of_claim(map(verdict_of, findings), complete=not missing)
        if verdict in {ClaimVerdict.OPEN, ClaimVerdict.NO_LONGER}:
            told = {finding.verdict for finding in findings if finding.unmet}
            verdict = ClaimVerdict.NOT_TESTED if ClaimVerdict.NOT_TESTED in told else ClaimVerdict.NO_LONGER
        said = answer_words(verdict, findings, missing, absent="not measured here", margin=margin)
        open_no_more = dict.fromkeys(("reason", "tendency", "more_s", "direction", "size"))
        return answer.model_copy(
            update={**changes, **open_no_more, "verdict": verdict, "words": said, "margin": margin}
        )

    def _untested(self, finding: PartFinding, unmet: Unmet) -> PartFinding:
        changed = self.setting.same_machine and unmet.by_software
        verdict = ClaimVerdict.NO_LONGER if changed else ClaimVerdict.NOT_TESTED
        nothing = dict.fromkeys(("direction", "tendency", "further"))
        changes = {
            **nothing,
            "at_limit": False,
            "campaigns_differ": False,
            "verdict": verdict,
            "unmet": unmet,
        }
        return finding.model_copy(update=changes)


def _only_in_requests(figure: CellFigure) -> bool:
    """Return whether a figure is the latency of a tool that is held back: its pauses, and its CPU time beside requests,
    are in no latency, so that the wait of the whole run does not bound what the disks can change."""
    return figure.metric.unit is Unit.NANOSECONDS and traits_of(figure.cell.workload).held_back


def known_of(figure: CellFigure) -> CellFacts:
    """Return the facts about a figure that are known before it is measured."""
    kind, traits = figure.cell.stack.machine.type, traits_of(figure.cell.workload)
    return CellFacts(
        cell=figure.cell,
        metric=figure.metric,
        guest=kind != _HOST,
        emulated=kind == _UML,
        threads=traits.parallel or 1,
        working_set_bytes=traits.working_set_bytes,
        reads_back=traits.reads_back and not traits.direct,
        request_bytes=max(traits.request_bytes, default=None),
    )


def compared_of(part: Part, sides: Sequence[CellFacts], lever: Lever | None) -> Compared:
    tie = not part.bounds.of_figure and part.bounds.low < 1 < part.bounds.high
    return Compared(sides=sides, tie=tie, of_figure=part.bounds.of_figure, lever=lever)


def unmet_of(compared: Compared, demands: Sequence[Demand], *, measured: bool = True) -> Iterator[Unmet]:
    """Yield the requirements that are not met: what is certain, then those of the claim, then those that are implied.

    ``measured``: what the claim requires is not met if it is unknown.
    """
    named = {one.name for one in demands}
    implied = [rule for name, rule in REGISTRY if name not in named and rule.implied(compared)]
    against = [(rule, rule.unmet(compared, declared=False)) for rule in implied]
    yield from (found for rule, found in against if found and rule.certain)
    for one in demands:
        rule = REGISTRY.get(one.name)
        if found := rule.unmet(compared, limit=one.limit, at_least=one.at_least, declared=measured):
            yield found
    yield from (found for rule, found in against if found and not rule.certain)


def _may_fail(parts: Sequence[Part], answer: ClaimAnswer, margin: float) -> bool:
    """Return whether more trials may show that a tested part is not replicated, which decides the claim."""
    return any(
        finding.verdict is ClaimVerdict.OPEN and not finding.at_limit and seems_to_fail(part, finding, margin)
        for part, finding in zip(parts, answer.findings, strict=True)
    )


def _part(record: TrialRecord, metric: str) -> RunPart | None:
    """Return the part of the run that a metric is about: its name is the beginning of the metric's. None: unknown."""
    parts = record.provenance.parts
    own = [name for name in parts if metric == name or metric.startswith(f"{name}_")]
    if own:
        return parts[max(own, key=len)]
    return parts.get(WHOLE)


def differs_in_size(cell: Cell, other: Cell) -> bool:
    """Return whether a cell is another one with another size of its file."""
    one, two = dict(cell.workload.parameters), dict(other.workload.parameters)
    alike = cell.stack == other.stack and cell.workload.tool == other.workload.tool
    return alike and one.pop("size", None) != two.pop("size", None) and one == two


def _median(values: Iterable[float | None]) -> float | None:
    """Return the median of the known values; None without any."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


_UNDECIDED = {ClaimVerdict.OPEN, *UNTESTED}


def answers(
    claims: Sequence[ClaimParts], judge: Evaluator, setting: Setting | None = None
) -> tuple[ClaimAnswer, ...]:
    """Return the answers of the trials to all claims together. Claims without a tested part do not count.

    ``setting``: what is known beside the trials, by which they are seen to test a claim.
    """
    others = [each.trials for each in judge.others]
    check = RequirementCheck(trials=judge.trials, others=others, setting=setting or Setting())
    unmet = [[check.unmet(part, claim.demands, claim.lever) for part in claim.parts] for claim in claims]

    def at(error: float) -> tuple[ClaimAnswer, ...]:
        strict = replace(judge, error=error)
        return tuple(
            check.answer(strict, claim, lacking) for claim, lacking in zip(claims, unmet, strict=True)
        )

    found = at(judge.error)
    testable = sum(answer.verdict not in UNTESTED for answer in found)
    decided = testable
    while True:
        now = sum(answer.verdict not in _UNDECIDED for answer in found)
        if now >= decided or now == 0:
            return found
        decided = now
        found = at(judge.error * decided / testable)
