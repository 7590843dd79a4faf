"""Formats a text: what each line is, which characters are markup, and the styles of the others. No Qt."""

from __future__ import annotations

import re
from collections.abc import Callable

from markdown_it.token import Token

from app.markdown.lines import BULLETS, MATH, TABLE_LINES, Formatted, Line, LineKind
from app.markdown.reveal import PARSER, InlineWalk, cells_of

_UNDERLINE = re.compile(r"(?<=[^\n]\n)(?:-+|=+)\Z")
# Ends of lines and the null character, which the parser would replace by something of another length.
_SAFE = str.maketrans({"\r": " ", "\x00": "\ufffd"})


def format_text(text: str, *, growing: bool = False) -> Formatted:
    """Format a text. growing: its last line is not complete; dashes there are more likely the beginning of something
    than the underline that makes a heading of the lines above. What cannot be made out stays as it is."""
    safe = text.translate(_SAFE)
    if growing:
        safe = _UNDERLINE.sub(lambda found: "x" * len(found.group()), safe)
    walk = Walk(safe, text)
    try:
        walk.run()
    except RecursionError:  # the parser's own; nesting is bounded, so not seen, and not worth a reply
        walk = Walk(safe, text)
    return walk.result()


class Walk(InlineWalk):
    """Goes through the blocks in order and writes down what they make of the lines."""

    def run(self) -> None:
        handlers: dict[str, Callable[[Token], None]] = {
            "blockquote_open": self._quote,
            "list_item_open": self._item,
            "heading_open": self._heading,
            "fence": self._fence,
            "code_block": self._code,
            "math_block": self._math,
            "hr": self._rule,
            "thead_open": self._table_head,
            "th_open": self._column,
            "tr_open": self._row_open,
            "tr_close": self._row_close,
            "inline": self._inline,
        }
        for token in PARSER.parse(self.text, self.env):
            if token.map and token.nesting >= 0 and token.type != "inline":
                outermost = token.level == 0 and not token.type.endswith("list_open")
                if outermost or (token.level == 1 and token.type == "list_item_open"):
                    self.units.append(token.map[0])
            if token.type in handlers:
                handlers[token.type](token)
        for line, kind in enumerate(self.kinds):
            if kind is LineKind.TEXT and not self.text[self.at[line] : self.stops[line]].strip():
                self.kinds[line] = LineKind.GAP

    def result(self) -> Formatted:
        columns = (self.starts, self.stops, self.kinds, self.quotes, self.lists, self.hang, self.first)
        lines = tuple(map(Line, *columns, self.heading, self.aligns))
        units = tuple(sorted(set(self.units)))
        return Formatted(lines, tuple(self.shown), tuple(self.styles), tuple(self.links), units)

    # Blocks

    def _quote(self, token: Token) -> None:
        for line in self._lines(token):
            place = self._indent(line)
            self.quotes[line] += 1
            if self.text.startswith(">", place):
                end = place + 1 + self.text.startswith(" ", place + 1)
                self._hide(place, end)
                self.at[line] = end

    def _item(self, token: Token) -> None:
        lines = self._lines(token)
        line = lines[0]
        place = self._indent(line)
        marker = token.info + token.markup
        if not self.text.startswith(marker, place):
            return
        if not token.info:
            self.shown[place] = BULLETS[min(self.lists[line], len(BULLETS) - 1)]
        shown = "".join(self.shown[place : place + len(marker)])
        self.at[line] = place + len(marker)
        spaces = self.at[line]
        if self._indent(line) > spaces:
            self.shown[spaces] = " "
        hang = (self.hang[line] if self.first[line] else "") + shown + " "
        for inner in lines:
            self.lists[inner] += 1
            self.hang[inner] = hang
        self.first[line] = True

    def _heading(self, token: Token) -> None:
        lines = self._lines(token)
        underlined = token.markup[0] in "=-"
        for line in lines[: -1 if underlined else None]:
            self.heading[line] = int(token.tag[1:])
        if underlined:
            self._vanish(lines[-1], LineKind.HIDDEN)

    def _rule(self, token: Token) -> None:
        self._vanish(self._lines(token)[0], LineKind.RULE)

    def _vanish(self, line: int, kind: LineKind) -> None:
        self.kinds[line] = kind
        self._hide(self.starts[line], self.stops[line])

    def _fence(self, token: Token) -> None:
        lines = self._lines(token)
        self.kinds[lines[0]] = LineKind.FENCE_OPEN
        self._caption(lines[0], token)
        inner = lines[1:]
        if inner and token.markup in self.text[self.starts[inner[-1]] : self.stops[inner[-1]]]:
            tail = self.text[self.at[inner[-1]] : self.stops[inner[-1]]].strip(" \t>")
            if tail and not tail.strip(token.markup[0]):
                self._vanish(inner[-1], LineKind.FENCE_CLOSE)
                inner = inner[:-1]
        self._code_lines(inner, token.content)

    def _caption(self, line: int, token: Token) -> None:
        """Of the line that opens a fence, its language is shown."""
        self._hide(self.starts[line], self.stops[line])
        name = token.info.split()[0] if token.info.split() else ""
        place = self.text.find(name, self.text.find(token.markup, self.at[line]) + len(token.markup), self.stops[line])
        if name and place >= 0:
            self.shown[place : place + len(name)] = self.source[place : place + len(name)]

    def _code(self, token: Token) -> None:
        self._code_lines(self._lines(token), token.content)

    def _code_lines(self, lines: range, content: str) -> None:
        for line, text in zip(lines, content.split("\n"), strict=False):
            self.kinds[line] = LineKind.CODE
            stop = self.stops[line]
            if self.text.endswith(text, self.starts[line], stop):
                self._hide(self.starts[line], stop - len(text))

    def _math(self, token: Token) -> None:
        for line in self._lines(token):
            start = self._indent(line)
            self.styles[start : self.stops[line]] = [MATH] * (self.stops[line] - start)

    # Tables

    def _table_head(self, token: Token) -> None:
        lines = self._lines(token)
        self.columns.clear()
        self.row_kind = LineKind.HEAD
        self._vanish(lines[-1] + 1, LineKind.HIDDEN)

    def _column(self, token: Token) -> None:
        self.columns.append(str(token.attrs.get("style", "")).removeprefix("text-align:").replace("left", ""))

    def _row_open(self, token: Token) -> None:
        """Cells stand apart by tabs; those that the table has no column for are shown as they are."""
        line = self.row_line = self._lines(token)[0]
        start = self._indent(line)
        self.kinds[line] = self.row_kind
        self.row = cells_of(self.text, start, self.stops[line])
        self._hide(start, self.stops[line])
        for _, stop in self.row[:-1]:
            self.shown[stop] = "\t"

    def _row_close(self, _: Token) -> None:
        for start, stop in self.row:
            self.shown[start:stop] = self.source[start:stop]
        self.row = []
        self.aligns[self.row_line] = tuple(self.columns)
        self.row_kind = LineKind.ROW

    def _inline(self, token: Token) -> None:
        if token.map is None:
            return
        in_table = self.kinds[token.map[0]] in TABLE_LINES
        places = self._places_in_cell() if in_table else self._places_in_lines(token)
        if places is not None:
            self.reveal(token, places)
