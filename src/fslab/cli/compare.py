"""``fslab compare`` and ``history``: two campaigns, exports, kernels or stacks; a study over time on one machine."""

from __future__ import annotations

from dataclasses import dataclass

from fslab.cli.common import (
    CampaignsStudyArgument,
    JsonOption,
    OnlyWorkloadsOption,
    ShownMetricsOption,
    StoreOption,
    console,
    open_store,
    print_json,
    say,
)
from fslab.errors import InconclusiveError, RegressionError, UsageError


@dataclass(frozen=True, kw_only=True)
class Gate:
    """What fails a build.

    Parameters:
        slower --fail-if-slower SHARE: Exit with 10 if a figure of B is significantly worse, and measured to be worse by
            SHARE or more, such as 5%.
        different --fail-if-different: Exit with 10 if any figure differs significantly.
        unsure_ok: Exit with 0, not 11, if trials are too few or too noisy to rule out what --fail-if-slower or
            --fail-if-different tests.
    """

    slower: str | None = None
    different: bool = False
    unsure_ok: bool = False

    def limit(self) -> float | None:
        """Return the share of --fail-if-slower. UsageError for --unsure-ok alone."""
        from fslab.units import parse_share

        if self.unsure_ok and self.slower is None and not self.different:
            hint = "add --fail-if-slower 5% or --fail-if-different"
            raise UsageError("needs --fail-if-slower or --fail-if-different", where="--unsure-ok", hint=hint)
        try:
            return None if self.slower is None else parse_share(self.slower)
        except ValueError as error:
            raise UsageError(str(error), where="--fail-if-slower") from error


def compare(
    a: str | None = None,
    b: str | None = None,
    *,
    stack: list[str] | None = None,
    kernel: list[str] | None = None,
    metric: ShownMetricsOption = None,
    differing: list[str] | None = None,
    force: bool = False,
    gate: Gate,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two sets of results, workload by workload: the ratio B ÷ A with its 95 % CI.

    Cells are matched if stack, workload and cache are the same, whatever their names; the others by name.
    "alike (± 10 %)": shown to differ by less (tails of latencies: ± 25 %); "maybe" marks a difference that is not
    significant after Holm correction. Geometric means are given per stack, direction (higher or lower is better) and
    block size.

    Results that were measured under unlike conditions are not compared, and each fact that differs is listed: allow
    facts to differ with --differing, or any with --force.

    For continuous integration: --fail-if-slower 5% fails if a slowdown is significant among all comparisons and
    measured to be 5 % or more, or if a cell that worked in A fails in B. If trials are too few or too noisy to rule
    out 5 %, or B lacks a cell of A, it is unsure, which has an exit code of its own. The first line says FAILED,
    UNSURE or PASSED, and why. --fail-if-different is unsure where neither a difference nor a tie within 10 % is shown.

    Parameters:
        a A: A campaign (id, its beginning, name, 'last', 'last~1'), or a JSON file of fslab export; or several,
            separated by commas: then each campaign is one value, its median (of counts: the mean). Default: 'last~1',
            or 'last' if stacks are named.
        b B: The same; ratios are B ÷ A. Default: 'last'.
        stack NAME: Only this stack (its name or file system). Given twice: compare the first one in A with the second
            one in B; in A if B is not given.
        kernel RELEASE: To be given twice: compare the trials on kernels whose releases begin with the first RELEASE and
            with the second.
        differing FACT: Allow FACT to differ: a fact (governor), a group of facts (kernel, cpu, memory, host, settings,
            images, device, tools, study) or 'machine' (all of a machine but kernel and settings). Repeatable.
        force: Compare despite unlike conditions; the differences are listed above the table.

    Examples:
        fslab compare                                  the last campaign against the one before it
        fslab compare last~1 last --differing kernel   the same after a kernel update
        fslab compare base.json last --fail-if-slower 5%
        fslab compare here.json there.json --differing machine
        fslab compare mon,wed,fri,sun tue,thu,sat,mo2  four campaigns with four, run alternately
        fslab compare last --stack ext4 --stack xfs    two stacks of one campaign
        fslab compare last --kernel 6.1 --kernel 6.12  two kernels of one campaign

    Exit codes:
         0  compared; what --fail-if-… tests is ruled out (with --unsure-ok: or unsure)
         2  invalid options, or no matching results
         7  no such campaign, or no such export
         9  conditions differ that --differing does not allow: nothing was compared
        10  the condition of --fail-if-slower or --fail-if-different is met, or B fails where A did not
        11  unsure: what --fail-if-… tests is neither shown nor ruled out
    """
    from fslab.analysis import regression_gate
    from fslab.api import comparisons

    limit = gate.limit()
    found = comparisons.compare(
        a, b, stacks=stack or [], kernels=kernel or [], metrics=metric or [], differing=differing or [], force=force,
        margin=limit, store=store,
    )  # fmt: skip
    comparisons.check_alike(found)
    judged = None
    if limit is not None or gate.different:
        judged = regression_gate.judge(found, slower=limit, different=gate.different)
        if not judged.total:
            what = "tests no figure: none of those that are compared has a preferred direction"
            hint = "name others with --metric, or use --fail-if-different"
            raise UsageError(what, where="--fail-if-slower", hint=hint)
    if as_json:
        print_json({**found.model_dump(), "gate": judged.as_document() if judged else None})
    else:
        from fslab.report import campaign_comparison_terminal

        if judged is not None:
            say(regression_gate.gate_words(judged))
        campaign_comparison_terminal.show(found, console())
    if judged is not None and judged.fails:
        raise RegressionError(regression_gate.failed_words(judged))
    if judged is not None and judged.answer is regression_gate.GateAnswer.UNSURE and not gate.unsure_ok:
        raise InconclusiveError(regression_gate.unsure_words(judged), hint=regression_gate.remedy(judged))


def history(
    study: CampaignsStudyArgument = None,
    *,
    stack: list[str] | None = None,
    workload: OnlyWorkloadsOption = None,
    metric: ShownMetricsOption = None,
    machine: str | None = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a study over time: each campaign is a point, and changes of level are marked.

    A change of level can be detected from about ten campaigns on. Its size is shown, and which facts of the machine
    changed at the same campaign (kernel, settings, tools, device). A single deviating campaign is not a change.
    Campaigns of other machines are left out, and so are cells that the last campaign no longer has.

    Parameters:
        stack NAME: Only this stack or file system. Repeatable.
        machine HOST: Host name of a machine. Default: that of the last campaign.

    Examples:
        fslab history                                   the study of the last campaign
        fslab history quick --workload synced-write     one workload, campaign by campaign
        fslab history quick --metric write_clat_p99     another figure than the headline ones
        fslab history quick --json                      every point and change, for a program

    Exit codes:
         0  shown, with or without changes
         2  no such workload, stack or metric
         7  the store has no campaign of that study
    """
    from fslab.api import comparisons

    with open_store(store) as opened:
        found = comparisons.history_of(opened, study, stack or [], workload or [], metric or [], machine)
    if as_json:
        print_json(found)
        return
    from fslab.report import history_terminal

    history_terminal.show(found, console())
