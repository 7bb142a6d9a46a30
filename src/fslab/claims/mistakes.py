"""Finds all mistakes of a claim, given the cells of its study. Pure; the study package adds lines and reports them."""

from collections.abc import Iterable, Iterator

from fslab.analysis.workload_groups import all_metrics
from fslab.claims import metric_units
from fslab.claims.language import EACH, Condition, Gains, Misread, Statement, Varies, names_in
from fslab.claims.parser import parse
from fslab.claims.requirements import demands
from fslab.claims.resolve import Resolver
from fslab.claims.schema import Claim
from fslab.claims.scope import MEMORY, Scope, flags, measure, workload_is
from fslab.errors import similar

Found = Iterator[tuple[tuple[str, int] | tuple[str], str]]


def mistakes(claim: Claim, scope: Scope) -> Found:
    """Yield each mistake: its place (a key, and the index in its list), and its text."""
    for number, pattern in enumerate(claim.on):
        if not any(workload_is(pattern, cell) for cell in scope.cells):
            yield ("on", number), _unknown("workload", pattern, scope.workloads)
    for number, text in enumerate(claim.requires):
        try:
            demands((text,))
        except ValueError as error:
            yield ("requires", number), str(error)
    on = scope.on(claim.on)
    if claim.metric is not None and on:
        known = {metric.name for cell in on for metric in all_metrics(cell.workload)}
        if all(metric_units.metric(cell.workload, claim.metric) is None for cell in on):
            yield ("metric",), _unknown("metric", claim.metric, known)
            return
    for number, text in enumerate(claim.that):
        for what in _of_statement(text, claim, scope):
            yield ("that", number), what


def _of_statement(text: str, claim: Claim, scope: Scope) -> Iterator[str]:
    try:
        statement = parse(text)
    except Misread as misread:
        yield f'column {misread.column} of "{text}": {misread.what}'
        return
    found = [*_names(statement, scope), *_keys(statement, scope)]
    yield from found
    if found or not scope.on(claim.on):
        return
    meaning = Resolver(claim=claim, statement=statement, scope=scope)
    try:
        parts = meaning.parts()
    except ValueError as error:
        yield str(error)
        return
    # With `each`, one stack may lack cells that another stack has.
    if not parts or (meaning.missing and not any(term.name == EACH for term in names_in(statement))):
        said = meaning.missing[0] if meaning.missing else "no two cells of the study can be compared"
        yield f'"{statement.text}": {said}'


def _names(statement: Statement, scope: Scope) -> Iterator[str]:
    for term in names_in(statement):
        if term.name != EACH and term.name not in scope.stacks:
            yield f"column {term.column}: {_unknown('stack', term.name, scope.stacks)}"
        if term.workload is not None and not any(workload_is(term.workload, cell) for cell in scope.cells):
            yield f"column {term.column}: {_unknown('workload', term.workload, scope.workloads)}"


def _keys(statement: Statement, scope: Scope) -> Iterator[str]:
    words = {flag for cell in scope.cells for flag in flags(cell)}
    for condition in _conditions(statement):
        yield from _condition(condition, words, scope)
    if isinstance(form := statement.form, Varies):
        unknown = (key for key in form.keys if key not in scope.keys)
        yield from (f"column {form.column}: {_unknown('key', key, scope.keys)}" for key in unknown)


def _condition(condition: Condition, words: set[str], scope: Scope) -> Iterator[str]:
    at = f"column {condition.column}: "
    if condition.op is None:
        if condition.key not in words:
            yield at + _unknown("option, layout or medium", condition.key, words)
    elif condition.key in scope.keys:
        values = {scope.of(cell).get(condition.key) for cell in scope.cells}
        ordered = condition.op.value in {"<", "<=", ">", ">="}
        if ordered and condition.value != MEMORY and measure(condition.value) is None:
            yield f"{at}'{condition.value}' is not a number; '{condition.key}' is compared with a number here"
        elif not ordered and not any(scope.meets(cell, condition) for cell in scope.cells):
            known = {str(value) for value in values if value is not None}
            yield at + _unknown(f"value of '{condition.key}'", condition.value, known)
    elif f"{condition.key}={condition.value}" not in words:
        pairs = {word for word in words if word.startswith(f"{condition.key}=")}
        if pairs:
            yield at + _unknown("option", f"{condition.key}={condition.value}", pairs)
        else:
            yield at + _unknown("key", condition.key, scope.keys)


def _conditions(statement: Statement) -> Iterable[Condition]:
    found = [*statement.region, *(each for term in names_in(statement) for each in term.conditions)]
    if isinstance(statement.form, Gains):
        found += [*statement.form.start, *statement.form.end]
    return found


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    if near := similar(name, names):
        return f"no {what} '{name}' — did you mean '{near}'?"
    listed = ", ".join(names[:24]) + (", …" if len(names) > 24 else "")
    return f"no {what} '{name}' — known: {listed}" if names else f"no {what} '{name}' — there are none"
