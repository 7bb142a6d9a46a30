"""Parses one statement of a claim: text → ``language``. Each mistake has the column at which it was found.

statement = ["overall"] form ["for" conditions]
form      = terms (">" terms)+                              | term "/" term range | term range
          | term ("~" term)+ "within" share                 | terms ("is" | "are") ("first" | "last") ["of" terms]
          | [term] "varies" ("more" | "less") "than" term "over" keys
          | [term] "varies" "less" "than" share "over" keys
          | [term] "varies" ("most" | "least") "over" keys
          | [term] ("does" | "do") "not" "depend" "on" keys "within" share
          | term "gains" ("more" | "less") "than" term "from" conditions "to" conditions
term      = (name | "each") ["[" conditions "]"] ["on" workload]
range     = ("<" | "<=" | ">" | ">=") figure | "in" figure ".." figure | "~" figure "within" share
"""

from collections.abc import Callable
from math import isfinite
from typing import TypeVar

from fslab.claims.language import (
    EACH,
    Condition,
    Extreme,
    Form,
    Gains,
    Level,
    Misread,
    Op,
    Order,
    Range,
    RatioForm,
    Statement,
    Term,
    Tie,
    Token,
    Varies,
    parted,
    tokens_of,
)

Found = TypeVar("Found")
_VERBS = {"varies", "vary", "does", "do"}
_WORDS = {
    *_VERBS, "is", "are", "gains", "for", "over", "within", "than", "from", "to", "of", "on", "in", "and",
}  # fmt: skip


def parse(text: str) -> Statement:
    """Return the statement in ``text``. Raises Misread if it is not a statement."""
    return _Parser(text).statement()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.at = 0

    def statement(self) -> Statement:
        overall = self.took("overall")
        form = self.form()
        region = self.conditions() if self.took("for") else ()
        if self.here is not None:
            raise self.wrong("the end, or 'for' with a condition")
        return Statement(text=" ".join(self.text.split()), form=form, region=region, overall=overall)

    def form(self) -> Form:
        if self.here is not None and self.here.plain and self.here.text in _VERBS:
            return self.after((Term(name=EACH, column=self.here.column),))
        return self.after(self.terms())

    def after(self, terms: tuple[Term, ...]) -> Form:
        """Parse the rest of the form, after its first terms."""
        if self.sees(">") and not self.number_here(1):
            return self.order(terms)
        if self.took("is", "are"):
            first = self.choice("first", "last") == "first"
            return Extreme(terms=terms, first=first, among=self.terms() if self.took("of") else ())
        if len(terms) > 1:
            raise self.wrong("'>' or 'is' after several stacks")
        return self.of_one(terms[0])

    def of_one(self, term: Term) -> Form:
        if self.took("/"):
            return RatioForm(over=term, under=self.term(), range=self.plain_range())
        if self.sees("~") and not self.number_here(1):
            terms = [term]
            while self.took("~"):
                terms.append(self.term())
            self.expect("within")
            return Tie(terms=tuple(terms), within=self.share())
        if self.sees("varies", "vary"):
            return self.varies(term)
        if self.took("does", "do"):
            return self.independent(term)
        if self.took("gains"):
            return self.gains(term)
        return Level(term=term, range=self.range())

    def order(self, first: tuple[Term, ...]) -> Order:
        groups = [first]
        while self.took(">"):
            groups.append(self.terms())
        return Order(groups=tuple(groups))

    def varies(self, term: Term) -> Varies:
        column = self.column
        self.next()
        how = self.choice("more", "less", "most", "least")
        other, within = None, None
        if how in {"more", "less"}:
            self.expect("than")
            if how == "less" and self.number_here():
                within = self.share()
            else:
                other = self.term()
        self.expect("over")
        more = how in {"more", "most"}
        return Varies(term=term, more=more, keys=self.keys(), other=other, within=within, column=column)

    def independent(self, term: Term) -> Varies:
        column = self.column
        for word in ("not", "depend", "on"):
            self.expect(word)
        keys = self.keys()
        self.expect("within")
        return Varies(term=term, more=False, keys=keys, within=self.share(), column=column)

    def gains(self, one: Term) -> Gains:
        more = self.choice("more", "less") == "more"
        self.expect("than")
        other = self.term()
        self.expect("from")
        start = self.conditions()
        self.expect("to")
        return Gains(one=one, other=other, more=more, start=start, end=self.conditions())

    def terms(self) -> tuple[Term, ...]:
        return self.several(self.term, ",")

    def term(self) -> Term:
        column = self.column
        name = self.word("a stack")
        conditions: tuple[Condition, ...] = ()
        if self.took("["):
            conditions = self.conditions()
            self.expect("]")
        workload = self.word("a workload") if self.took("on") else None
        if workload is not None and self.sees("["):  # such as sync-read[threads=1]
            self.next()
            inside = ",".join(map(str, self.conditions()))
            self.expect("]")
            workload = f"{workload}[{inside}]"
        return Term(name=name, conditions=conditions, workload=workload, column=column)

    def conditions(self) -> tuple[Condition, ...]:
        return self.several(self.condition, ",", "and")

    def condition(self) -> Condition:
        column = self.column
        key = self.word("a key such as threads")
        for op in Op:
            if self.took(op.value):
                return Condition(key=key, op=op, value=self.word("a value"), column=column)
        return Condition(key=key, column=column)

    def keys(self) -> tuple[str, ...]:
        return self.several(lambda: self.word("a key"), ",", "and")

    def plain_range(self) -> Range:
        """Parse the range of a ratio, which has no unit."""
        begin = self.at
        found = self.range()
        within = next((n for n in range(begin, self.at) if self.tokens[n].text == "within"), self.at)
        for token in self.tokens[begin:within]:
            if token.is_figure and not token.text.replace(".", "", 1).isdecimal():
                raise Misread(f"'{token.text}' is not a ratio: write a number without a unit", token.column)
        return found

    def range(self) -> Range:
        if self.took("in"):
            column, low = self.column, self.figure()
            self.expect("..")
            high = self.figure()
            least, most = parted(low), parted(high)
            if least[1] == most[1] and least[0] >= most[0]:
                raise Misread(f"{low}..{high} is empty: write the smaller value first", column)
            return Range(low=low, high=high)
        if self.took("~"):
            column, middle = self.column, self.figure()
            if parted(middle)[0] == 0:
                raise Misread("a share of 0 is 0: write a number greater than 0", column)
            self.expect("within")
            return Range(low=middle, high=middle, within=self.share())
        for sign in (">=", "<=", ">", "<"):
            if self.took(sign):
                if not self.number_here() and sign in {"<", "<="}:
                    raise self.wrong("a figure (in an order, write the better stack first: xfs > ext4)")
                column, end = self.column, self.figure()
                strict = len(sign) == 1
                if sign[0] == "<" and parted(end)[0] == 0:
                    raise Misread("no figure and no ratio is below 0: write a number greater than 0", column)
                return Range(low=end, strict=strict) if sign[0] == ">" else Range(high=end, strict=strict)
        raise self.wrong("a statement: '>', '~', 'is first', '>= 2', 'in 2..3', 'varies …'")

    def figure(self) -> str:
        if not self.number_here():
            raise self.wrong("a figure such as 2, 10% or 4us")
        token = self.next()
        if not isfinite(parted(token.text)[0]):
            raise Misread(f"'{token.text[:20]}…' is too large", token.column)
        return token.text

    def share(self) -> float:
        """Parse ``10%`` or ``0.1``, and return it as a fraction."""
        column, text = self.column, self.figure()
        try:
            value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError as error:
            raise Misread(f"'{text}' is not a share: write 10%", column) from error
        if not (isfinite(value) and value > 0):
            raise Misread(f"'{text}' is not a share: write 10%", column)
        if value >= 1 and not text.endswith("%"):
            raise Misread(f"'{text}' is {value * 100:g} %: write {text}%, or {value * 100:g}%", column)
        return value

    @property
    def here(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    @property
    def column(self) -> int:
        return self.here.column if self.here else len(self.text) + 1

    def next(self) -> Token:
        token = self.here
        if token is None:
            raise self.wrong("more")
        self.at += 1
        return token

    def sees(self, *words: str) -> bool:
        return self.here is not None and self.here.plain and self.here.text in words

    def several(self, one: Callable[[], Found], *between: str) -> tuple[Found, ...]:
        found = [one()]
        while self.took(*between):
            found.append(one())
        return tuple(found)

    def took(self, *words: str) -> bool:
        found = self.sees(*words)
        self.at += found
        return found

    def expect(self, word: str) -> None:
        if not self.took(word):
            raise self.wrong(f"'{word}'")

    def choice(self, *words: str) -> str:
        if not self.sees(*words):
            raise self.wrong(" or ".join(f"'{word}'" for word in words))
        return self.next().text

    def number_here(self, ahead: int = 0) -> bool:
        at = self.at + ahead
        return at < len(self.tokens) and self.tokens[at].is_figure

    def word(self, what: str) -> str:
        token = self.here
        if token is None or (token.plain and (token.text in _WORDS or not token.is_name)):
            raise self.wrong(what)
        self.at += 1
        return token.text

    def wrong(self, wanted: str) -> Misread:
        """Return the error that the next token is not what is ``wanted``."""
        got = f"'{self.here.text}'" if self.here else "the end"
        return Misread(f"expected {wanted}, not {got}", self.column)
