"""Shows the text of paragraphs and cells without their markup, each character in its place. No Qt."""

from __future__ import annotations

import re

from markdown_it.token import Token

from app.markdown.inline import make_parser
from app.markdown.lines import BOLD, CODE, ITALIC, LINK, MATH, NOTHING, STRIKE, LineKind, Run, units16

PARSER = make_parser()
_OPENING = {"em_open": ITALIC, "strong_open": BOLD, "s_open": STRIKE, "link_open": LINK}
_CLOSING = {"em_close": ITALIC, "strong_close": BOLD, "s_close": STRIKE, "link_close": LINK}
_ADDRESS = re.compile(r"https?://[^\s<>\"'`|]*[^\s<>\"'`|.,;:!?)\]}*_~。，；：！？）】」》]")


def cells_of(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """The cells of a table's row, as stretches of its text; a pipe ends each but, perhaps, the last."""
    cells, begin = [], start
    for i in range(start, stop):
        if text[i] == "|" and text[i - 1 : i] != "\\":
            cells.append((begin, i))
            begin = i + 1
    cells.append((begin, stop))
    if text.startswith("|", start):
        del cells[0]
    if cells and not text[slice(*cells[-1])].strip():
        del cells[-1]
    return cells


class InlineWalk:
    """The characters of a text, and what they are shown as."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.shown = list(source)
        self.styles = [0] * len(text)
        self.links: list[Run] = []
        self.starts, self.stops = [0], []
        for i, c in enumerate(text):
            if c == "\n":
                self.stops.append(i)
                self.starts.append(i + 1)
        self.stops.append(len(text))
        count = len(self.starts)
        self.at = list(self.starts)  # how far the markup of quotes and lists goes on each line
        self.kinds = [LineKind.TEXT] * count
        self.quotes, self.lists, self.heading = [0] * count, [0] * count, [0] * count
        self.hang, self.first = [""] * count, [False] * count
        self.aligns: list[tuple[str, ...]] = [()] * count
        self.units: list[int] = []
        self.columns: list[str] = []  # of the table that is gone through: how they are aligned
        self.row: list[tuple[int, int]] = []  # cells of its row that are still to come
        self.row_line, self.row_kind = 0, LineKind.ROW
        self.env: dict[str, object] = {}

    # Characters

    def _hide(self, start: int, stop: int) -> None:
        for i in range(start, stop):
            self.shown[i] = NOTHING * (1 if self.text[i] <= "\uffff" else 2)

    def _indent(self, line: int) -> int:
        """Hide spaces before a line's content; where that begins."""
        start = self.at[line]
        while self.at[line] < self.stops[line] and self.text[self.at[line]] in " \t":
            self.at[line] += 1
        self._hide(start, self.at[line])
        return self.at[line]

    def _lines(self, token: Token) -> range:
        assert token.map is not None
        return range(token.map[0], min(token.map[1], len(self.starts)))

    # Inline

    def _places_in_lines(self, token: Token) -> list[int] | None:
        """Where each character of a paragraph's or heading's content stands; None where that cannot be told."""
        places: list[int] = []
        for line, part in zip(self._lines(token), token.content.split("\n"), strict=False):
            bare = part.strip()
            stop = self.at[line] + len(self.text[self.at[line] : self.stops[line]].rstrip())
            start = stop - len(bare)
            if not self.text.startswith(bare, start) or start < self.at[line]:
                start = self.text.find(bare, self.at[line], self.stops[line])  # a heading's closing marks follow
            if start < 0:
                return None
            spaces = len(part) - len(part.lstrip())
            places += [start] * spaces
            places += range(start, start + len(part) - spaces)
            places.append(self.stops[line])
            self._hide(self.at[line], self.stops[line])
        return places if len(places) > len(token.content) else None

    def _places_in_cell(self) -> list[int]:
        start, stop = self.row.pop(0) if self.row else (0, 0)
        cell = self.text[start:stop]
        start, stop = start + len(cell) - len(cell.lstrip()), stop - len(cell) + len(cell.rstrip())
        return [i for i in range(start, stop) if not self.text.startswith("\\|", i)] + [stop]

    def reveal(self, token: Token, places: list[int]) -> None:
        """Show the text of an inline token; places: where each character of its content stands in the source."""
        style, href = 0, ""
        for child in PARSER.inline.parse(token.content, PARSER, self.env, []):
            at = int(child.meta.get("at", 0))
            if child.type in _OPENING:
                style |= _OPENING[child.type]
                href = str(child.attrs.get("href", href))
            elif child.type in _CLOSING:
                style &= ~_CLOSING[child.type]
            elif child.type == "text":
                self._show(places[at : at + len(child.content)], style, href)
            elif child.type == "text_special":
                self._stand_in(places[at : int(child.meta["end"])], child.content, style, href)
            elif child.type == "math_inline":
                self._show(places[at : at + len(child.content)], style | MATH, href)
            elif child.type == "code_inline":
                inner = slice(at + len(child.markup), int(child.meta["end"]) - len(child.markup))
                pad = int(len(child.content) < inner.stop - inner.start)
                self._show(places[inner.start + pad : inner.stop - pad], style | CODE, href)
            elif child.type == "image":
                self._image(child, token.content, places)
        self._addresses(places)

    def _show(self, places: list[int], style: int, href: str = "") -> None:
        for place in places:
            if self.text[place : place + 1] != "\n":
                self.shown[place] = self.source[place]
                self.styles[place] = style
        if style & LINK and places:
            self.links.append(Run(places[0], places[-1] + 1, style, href))

    def _stand_in(self, places: list[int], content: str, style: int, href: str) -> None:
        """What a character reference or an escape stands for, in its first place; where it has room there."""
        if "\n" in content or units16(content) > len(places):
            self._show(places, style, href)
            return
        self._show(places, style, href)
        self._hide(places[0], places[-1] + 1)
        signs = list(content)
        for place, sign in zip(places, signs, strict=False):
            self.shown[place] = sign
        for place in places[len(places) - sum(sign > "\uffff" for sign in signs) :]:
            self.shown[place] = ""  # made room for characters of two units

    def _image(self, child: Token, content: str, places: list[int]) -> None:
        """No picture is fetched: its words are a link to it, its source where it has none."""
        at, end = int(child.meta["at"]), int(child.meta["end"])
        words = slice(at + 2, at + 2 + len(child.content))
        if not child.content.strip() or content[words] != child.content:
            words = slice(at, end)
        self._show(places[words], LINK, str(child.attrs.get("src", "")))

    def _addresses(self, places: list[int]) -> None:
        """Addresses that stand in the text without markup are links too."""
        if not places:
            return
        first, last = min(places), max(places)
        for found in _ADDRESS.finditer(self.text, first, last):
            start, stop = found.span()
            seen = NOTHING not in self.shown[start:stop]
            if seen and not any(style & (CODE | MATH | LINK) for style in self.styles[start:stop]):
                self._show(list(range(start, stop)), self.styles[start] | LINK, found.group())
