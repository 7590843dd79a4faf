"""How the lines and stretches of a reply are set: fonts, margins, line heights. Colours by their role in the theme.

Hues in a reply mean what became of a token, so text is told apart by weight, font and lightness; the accent is for
links and the keywords of code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtGui import QFont, QFontMetricsF, QTextBlockFormat, QTextCharFormat, QTextFormat, QTextOption

from app.markdown.lines import BOLD, CODE, ITALIC, LINK, MATH, STRIKE, TABLE_LINES, Line, LineKind
from app.theme import PX_CONTROL, PX_LABEL, PX_TEXT, Theme, mono_font, ui_font

ROLE = QTextFormat.Property.UserProperty.value + 1  # of a stretch: the name of its colour
INDENT = QTextFormat.Property.UserProperty.value + 2  # of a line: where its card or table begins
QUOTES = QTextFormat.Property.UserProperty.value + 3  # of a line: its levels of quotation
INLINE_CODE = QTextFormat.Property.UserProperty.value + 4  # of a stretch, and of a line that has some
ALIGNS = QTextFormat.Property.UserProperty.value + 5  # of a table's row: how its columns are aligned
WIDEST = 800  # characters of a line of code above which it is not kept on one line

HEADING_PX = (22, 19, 17, 15, 15, 15)
QUOTE_STEP = 16.0
_LIST_STEP, _LIST_EDGE = 20.0, 6.0
CODE_PAD, _CELL_GAP = 12.0, 24.0
_LINE = 25 / 15  # line height over font size
_CODE_LINE = 22 / 13
_FIXED = QTextBlockFormat.LineHeightTypes.FixedHeight.value
_CHINESE = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\uac00-\ud7a3]")


def heading_font(level: int, text: QFont) -> QFont:
    """The font of a heading of level 1 to 6; text: the font of what it stands above."""
    font = QFont(text)
    font.setPointSizeF(text.pointSizeF() * HEADING_PX[level - 1] / PX_TEXT)
    font.setWeight(QFont.Weight.DemiBold)
    return font


class ReplyFormats:
    """Makes formats, and keeps those of stretches: the same few are wanted again and again."""

    def __init__(self, font: QFont, size: int) -> None:
        self._font, self._size = font, size
        self._theme: Theme | None = None
        self.wrapping = False  # code and tables too, where nothing can be scrolled
        self._chars: dict[tuple[int, LineKind, int, bool, bool], QTextCharFormat] = {}
        self._mono = mono_font(PX_CONTROL)
        self._metrics = QFontMetricsF(font)

    def set_theme(self, theme: Theme) -> None:
        """What is made from now on has this theme's colours."""
        self._theme = theme
        self._chars.clear()

    def char(self, style: int, line: Line, text: str, href: str = "") -> QTextCharFormat:
        """The format of a stretch of a line; text: what it says."""
        slanted = bool(style & ITALIC)
        key = (style, line.kind, line.heading, bool(line.quotes), slanted and _CHINESE.search(text) is not None)
        form = self._chars.get(key)
        if form is None:
            form = self._chars[key] = self._make_char(*key)
        if href:
            form = QTextCharFormat(form)
            form.setAnchor(True)
            form.setAnchorHref(href)
        return form

    def _make_char(self, style: int, kind: LineKind, heading: int, quoted: bool, chinese: bool) -> QTextCharFormat:
        form = QTextCharFormat()
        if style & (CODE | MATH) or kind is LineKind.CODE:
            font = heading_font(heading, self._mono) if heading else QFont(self._mono)
        elif kind is LineKind.FENCE_OPEN:
            font = ui_font(PX_LABEL)
        else:
            font = heading_font(heading, self._font) if heading else QFont(self._font)
        if style & BOLD or kind is LineKind.HEAD:
            font.setWeight(QFont.Weight.DemiBold)
        if style & ITALIC and chinese:
            font.setWeight(QFont.Weight.Medium)  # Chinese is not slanted
        elif style & ITALIC:
            font.setItalic(True)
        form.setFont(font)
        form.setFontStrikeOut(bool(style & STRIKE))
        if style & CODE and kind is not LineKind.CODE:
            form.setProperty(INLINE_CODE, True)
        role = "accent" if style & LINK else "text2" if quoted or kind is LineKind.FENCE_OPEN else ""
        return self.coloured(form, role)

    def coloured(self, form: QTextCharFormat, role: str) -> QTextCharFormat:
        """The format, with the colour of a role."""
        if role:
            form.setProperty(ROLE, role)
            if self._theme is not None:
                form.setForeground(self._theme.color(role))
        return form

    def block(self, line: Line, length: int = 0, *, continued: bool = False, indent: float = 0) -> QTextBlockFormat:
        """The format of a line. length: its characters. continued: it goes on a line too long to be laid out as one.
        indent: of code that stands under something indented."""
        form = QTextBlockFormat()
        form.setLineHeight(round(self._height(line)), _FIXED)
        hang = self._metrics.horizontalAdvance(line.hang) if line.hang else 0.0
        edge = indent + line.quotes * QUOTE_STEP
        if line.lists:
            edge += _LIST_EDGE + (line.lists - 1) * _LIST_STEP + hang
        if line.quotes:
            form.setProperty(QUOTES, line.quotes)
        if line.first and not continued:
            form.setTextIndent(-hang)
            form.setTopMargin(self._size * 0.25)
        if line.heading:
            form.setHeadingLevel(line.heading)
            form.setTopMargin(self._size * (0.6 if line.heading < 3 else 0.3))
        if line.kind >= LineKind.CODE:
            form.setProperty(INDENT, edge)
            form.setRightMargin(CODE_PAD)
            form.setNonBreakableLines(line.kind is LineKind.CODE and length <= WIDEST and not self.wrapping)
            edge += CODE_PAD
        if line.kind is LineKind.FENCE_OPEN:
            form.setTopMargin(self._size * 0.2)
        if line.kind is LineKind.FENCE_CLOSE:
            form.setBottomMargin(self._size * 0.2)
        if line.kind in TABLE_LINES:
            form.setProperty(INDENT, edge)
            form.setNonBreakableLines(length <= WIDEST and not self.wrapping)
            form.setProperty(ALIGNS, ",".join(line.aligns))
            form.setTopMargin(4)
            form.setBottomMargin(4)
        form.setLeftMargin(edge)
        return form

    def _height(self, line: Line) -> float:
        code_size = self._size * PX_CONTROL / PX_TEXT
        heights = {
            LineKind.GAP: self._size * 0.8,
            LineKind.END: 1,
            LineKind.HIDDEN: 1,
            LineKind.RULE: self._size,
            LineKind.CODE: code_size * _CODE_LINE,
            LineKind.FENCE_OPEN: code_size * _CODE_LINE,
            LineKind.FENCE_CLOSE: code_size * 0.9,
        }
        size = HEADING_PX[line.heading - 1] * self._size / PX_TEXT if line.heading else self._size
        return heights.get(line.kind, size * (1.45 if line.heading else _LINE))

    def tabs(self, widths: Sequence[float], aligns: Sequence[str]) -> list[QTextOption.Tab]:
        """Where the columns of a table stand after its first, for columns of these widths."""
        tabs, place = [], 0.0
        for i, width in enumerate(widths[:-1]):
            place += width + _CELL_GAP
            align = aligns[i + 1] if i + 1 < len(aligns) else ""
            if align == "right":
                tabs.append(QTextOption.Tab(place + widths[i + 1], QTextOption.TabType.RightTab))
            elif align == "center":
                tabs.append(QTextOption.Tab(place + widths[i + 1] / 2, QTextOption.TabType.CenterTab))
            else:
                tabs.append(QTextOption.Tab(place, QTextOption.TabType.LeftTab))
        return tabs
