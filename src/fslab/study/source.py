"""Parses YAML text to a tree of nodes with their positions.

Uses the composed nodes of ruamel.yaml instead of loaded values: they have the line of every key and list item, and
contain all duplicate keys, not only the first. What a study may contain is not part of this module.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as YamlNode
from ruamel.yaml.scanner import Scanner

from fslab.cell import Scalar
from fslab.names import obeyed
from fslab.study.mistakes import Mistakes, Path, SourcePosition

MERGE_TAG = "tag:yaml.org,2002:merge"
# With anchors, a few lines can expand to any number of values. A real study has a few hundred.
MAX_NODES = 20_000
LONGEST_TEXT = (
    1 << 16
)  # characters: splitting a text into words takes longer than in proportion to its length
LONGEST_KEY = 1024  # characters of a key that no '?' precedes, by YAML
LARGEST_BITS = 64  # of an integer: floats, tools and str() have limits for them
# What the YAML library says: what to do.
_ADVICE = {
    "character '\\t'": "indent with spaces, not with tabs",
    "cannot start any token": "put a text that begins with this character in quotes",
    "mapping values are not allowed": "put a text that contains ': ' in quotes, or indent the line as the one before",
    "found unexpected end of stream": "a quote is not closed",
    "expected ',' or '}'": "close each '{', and separate what is in it by ','",
    "expected ',' or ']'": "close each '[', and separate what is in it by ','",
    "expected '<document start>'": "write 'key: value' in each line",
}

Content: TypeAlias = "dict[str, Node] | list[Node] | Scalar | None"


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A value of the study with the place where it is written.

    ``content`` is a dict of nodes, a list of nodes, or a scalar (None: the key has no value).
    """

    content: Content
    place: SourcePosition
    path: Path

    @property
    def fields(self) -> dict[str, Node]:
        """The entries of a mapping; empty for anything else."""
        return self.content if isinstance(self.content, dict) else {}

    def entries(self, key: str) -> dict[str, Node]:
        """Return the entries of the mapping under ``key``; none if there is no such mapping."""
        return self.fields[key].fields if key in self.fields else {}

    @property
    def items(self) -> list[Node]:
        """The items of a list; for any other value, a list that contains this node."""
        return self.content if isinstance(self.content, list) else [self]

    def plain(self) -> object:
        if isinstance(self.content, dict):
            return {key: node.plain() for key, node in self.content.items()}
        if isinstance(self.content, list):
            return [node.plain() for node in self.content]
        return self.content

    def at(self, path: Path) -> Node:
        """Return the node at ``path`` below this one, or the last existing node on the way there."""
        node = self
        for step in path:
            content = node.content
            if isinstance(content, dict) and step in content:
                node = content[str(step)]
            elif isinstance(content, list) and isinstance(step, int) and step < len(content):
                node = content[step]
            else:
                break
        return node


def parse(text: str, name: str, mistakes: Mistakes) -> Node | None:
    """Return the study's tree; note a mistake and return None if the text is empty or not valid YAML.

    ``name`` is shown with line numbers, as in ``name:12``.
    """
    start = SourcePosition(origin=name, line=1)
    composed = _compose(text, start, (), mistakes)
    if composed is None:
        if not mistakes.found:
            mistakes.add(start, (), "the file is empty: a study has at least title, stacks and workloads")
        return None
    return _Builder(mistakes=mistakes, origin=start).build(composed, (), _place(composed, start))


def parse_value(text: str, place: SourcePosition, path: Path, mistakes: Mistakes) -> Node | None:
    """Return the value of one ``--set``, with all its nodes at ``place``; None if it is not valid YAML."""
    composed = _compose(text, place, path, mistakes)
    if composed is None:
        return Node(content=None, place=place, path=path) if not text.strip() else None
    return _Builder(mistakes=mistakes, origin=place).build(composed, path, place)


def _compose(text: str, start: SourcePosition, path: Path, mistakes: Mistakes) -> YamlNode | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ruamel.yaml warns of repeated anchor names, which YAML allows
            reader = YAML(typ="safe", pure=True)
            reader.Composer, reader.Scanner = _BoundedComposer, _QuickScanner
            return reader.compose(text)  # type: ignore[no-any-return]
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark and start.line else start.line
        what = ", ".join(str(part) for part in (error.context, error.problem) if part)
        mistakes.add(replace(start, line=line), path, f"not valid YAML: {what}{_advice(what)}")
    except YAMLError as error:
        what = " ".join(str(error).split())
        mistakes.add(_offset_place(error, text, start), path, f"not valid YAML: {what}")
    except RecursionError:
        mistakes.add(start, path, "nested too deeply")
    return None


def _advice(what: str) -> str:
    """Return what to do about what the YAML library says, where it is not clear from that; else nothing."""
    return next((f" — {advice}" for said, advice in _ADVICE.items() if said in what), "")


class _BoundedComposer(Composer):
    """Ends at a number of values, keys counted: composing takes seconds for each megabyte."""

    composed = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.composed += 1
        if self.composed > 2 * MAX_NODES + 1:
            mark = self.parser.peek_event().start_mark
            raise ComposerError(None, None, f"more than {MAX_NODES} values", mark)
        return super().compose_node(parent, index)


class _QuickScanner(Scanner):
    """Looks for stale keys in constant time, which took most of the time of text that is nested deeply.

    The first possible key is the oldest. If it is on this line and near, so are all that follow it.
    """

    def stale_possible_simple_keys(self) -> None:
        for oldest in self.possible_simple_keys.values():
            reader = self.reader
            if oldest.line != reader.line or reader.index - oldest.index > LONGEST_KEY:
                super().stale_possible_simple_keys()
            return


def _offset_place(error: YAMLError, text: str, start: SourcePosition) -> SourcePosition:
    """Return the place of an error that has only a character offset."""
    offset = getattr(error, "position", None)
    if not start.line or not isinstance(offset, int):
        return start
    return replace(start, line=text.count("\n", 0, offset) + 1)


def _place(node: YamlNode, origin: SourcePosition) -> SourcePosition:
    return replace(origin, line=node.start_mark.line + 1) if origin.line else origin


@dataclass(kw_only=True, slots=True)
class _Builder:
    """Converts composed YAML nodes to ``Node``. An alias becomes a copy, so that --set changes one place only."""

    mistakes: Mistakes
    origin: SourcePosition
    constructor: Any = field(default_factory=lambda: YAML(typ="safe", pure=True).constructor)
    open: list[YamlNode] = field(default_factory=list)
    built: int = 0

    def build(self, node: YamlNode, path: Path, place: SourcePosition) -> Node:
        self.built += 1
        if node in self.open or self.built > MAX_NODES:
            why = "contains itself" if node in self.open else f"stands for more than {MAX_NODES} values"
            if self.built <= MAX_NODES + 1:
                self.mistakes.add(place, path, f"the anchor {why}")
            return Node(content=None, place=place, path=path)
        self.open.append(node)
        try:
            return Node(content=self._content(node, path, place), place=place, path=path)
        finally:
            self.open.pop()

    def _content(self, node: YamlNode, path: Path, place: SourcePosition) -> Content:
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            items = enumerate(node.value)
            return [self.build(item, (*path, index), _place(item, self.origin)) for index, item in items]
        return self._scalar(node, path, place)

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Node]:
        fields: dict[str, Node] = {}
        merged: dict[str, Node] = {}
        for key, value in node.value:
            place = _place(key, self.origin)
            if key.tag == MERGE_TAG:
                merged = {**self._merge(value, path, place), **merged}
            elif not isinstance(key, ScalarNode):
                self.mistakes.add(place, path, "a key must be a plain name")
            elif key.value in fields:
                first = fields[key.value].place
                self.mistakes.add(place, (*path, key.value), f"duplicate name (first at {first})")
            else:
                self._printable(key.value, path, place)
                fields[key.value] = self.build(value, (*path, key.value), place)
        return {**merged, **fields}

    def _merge(self, node: YamlNode, path: Path, place: SourcePosition) -> dict[str, Node]:
        """Return the fields that ``<<: *anchor`` adds. With several anchors, the first wins (YAML merge key type)."""
        fields: dict[str, Node] = {}
        for mapping in node.value if isinstance(node, SequenceNode) else [node]:
            content = self.build(mapping, path, place).content
            if isinstance(content, dict):
                fields = {**content, **fields}
            else:
                self.mistakes.add(place, path, "'<<' takes the anchor of a mapping")
        return fields

    def _scalar(self, node: YamlNode, path: Path, place: SourcePosition) -> Scalar | None:
        try:
            value = self.constructor.construct_object(node)
        except (YAMLError, ValueError) as error:
            problem = getattr(error, "problem", None) or error
            self.mistakes.add(place, path, f"not a value fslab reads: {' '.join(str(problem).split())}")
            return None
        wrong = None
        match value:
            case int() if value.bit_length() > LARGEST_BITS:
                wrong = f"'{node.value[:20]}…' is too large: a whole number has at most 64 bits"
            case float() if not isfinite(value):
                wrong = f"'{node.value}' is not a finite number"
            case str():
                self._printable(value, path, place)
                if len(value) > LONGEST_TEXT:
                    wrong = f"a text has at most {LONGEST_TEXT} characters: put it in a file"
        if wrong is not None:
            self.mistakes.add(place, path, wrong)
            return None
        # For example a date is kept as it is written.
        return value if value is None or isinstance(value, Scalar) else str(node.value)

    def _printable(self, text: str, path: Path, place: SourcePosition) -> None:
        """Note a control character: a terminal that displays the study would obey it, and no path needs one."""
        found = obeyed(text)
        if found is not None:
            self.mistakes.add(place, path, f"contains the control character {found}")
