"""Inline Markdown with the place in the source of everything it finds. markdown-it does not keep places by itself."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.common.utils import isMdAsciiPunct, isPunctChar
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token

DEEPEST = 40  # levels of nesting that are told apart; what lies deeper is text
_MATH = re.compile(
    r"\$\$.{1,1000}?\$\$|\\\(.{1,1000}?\\\)|\\\[.{1,1000}?\\\]|\$(?![\s$])(?:[^$\\\n]|\\.){1,300}?(?<![\s\\])\$(?![\d$])",
    re.DOTALL,
)
_MATH_FENCES = {"$$": "$$", "\\[": "\\]"}


_UNSPACED = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef]")


def _is_unspaced(character: str) -> bool:
    return _UNSPACED.match(character) is not None


def _punctuation(character: str) -> bool:
    return isMdAsciiPunct(ord(character)) or isPunctChar(character)


class _Placed(StateInline):
    """Knows where text began that no token holds yet."""

    pending_from = -1

    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:
        """CommonMark's rules, but for Chinese, Japanese and Korean, which set no spaces between words: beside such a
        character, marks of emphasis open and close as beside a space, also where punctuation is on their other side."""
        found = super().scanDelims(start, canSplitWord)
        before = self.src[start - 1 : start] if start > 0 else " "
        after = self.src[start + found.length : start + found.length + 1] or " "
        if not canSplitWord or not (_is_unspaced(before) or _is_unspaced(after)):
            return found
        opens = not after.isspace() and (not _punctuation(after) or not before.isalnum() or _is_unspaced(before))
        closes = not before.isspace() and (not _punctuation(before) or not after.isalnum() or _is_unspaced(after))
        return Scanned(opens, closes, found.length)

    def pushPending(self) -> Token:
        place, self.pending_from = self.pending_from, -1
        token = super().pushPending()
        token.meta["at"] = place
        return token


class PlacingParser(ParserInline):
    """Tokens carry `meta["at"]`, where their text begins, and those made of markup `meta["end"]`."""

    def tokenize(self, state: StateInline) -> None:
        assert isinstance(state, _Placed)
        rules, deepest = self.ruler.getRules(""), state.md.options["maxNesting"]
        while state.pos < state.posMax:
            start, known = state.pos, len(state.tokens)
            if not (state.level < deepest and any(rule(state, False) for rule in rules)):
                state.append_pending(state.src[state.pos])
                state.pos += 1
            _place(state.tokens[known:], state, start)
            if not state.pending:
                state.pending_from = -1
            elif state.pending_from < 0:
                state.pending_from = start
        if state.pending:
            state.pushPending()

    def parse(self, src: str, md: MarkdownIt, env: dict[str, object], tokens: list[Token]) -> list[Token]:  # type: ignore[override]
        state = _Placed(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


def _place(tokens: list[Token], state: StateInline, start: int) -> None:
    """Note the places of the tokens that one rule made of the source from `start` on."""
    place = start
    if tokens and tokens[-1].type == "link_close" and tokens[-1].info == "auto":
        text = tokens[-2]  # says where the link leads in markdown-it's words; the source is shown
        text.content, text.meta["at"] = state.src[start + 1 : state.pos - 1], start + 1
    for token in tokens:
        if "at" in token.meta:
            continue
        token.meta["at"] = place
        if token.type == "text":
            place += len(token.content)
        else:
            token.meta["end"] = state.pos


def _inline_math(state: StateInline, silent: bool) -> bool:
    """LaTeX is left as it is: its underscores and backslashes mean something else than Markdown's."""
    if state.src[state.pos] not in "$\\":
        return False
    found = _MATH.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("math_inline", "", 0).content = found.group()
    state.pos = found.end()
    return True


def _block_math(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """LaTeX on lines of its own, up to its closing mark or an empty line."""
    if state.is_code_block(start):
        return False
    first = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    closing = _MATH_FENCES.get(first[:2])
    if closing is None or closing in first[2:]:
        return False
    if silent:
        return True
    line = start + 1
    while line < end and not state.isEmpty(line) and state.sCount[line] >= state.blkIndent:
        line += 1
        if closing in state.src[state.bMarks[line - 1] : state.eMarks[line - 1]]:
            break
    state.push("math_block", "", 0).map = [start, line]
    state.line = line
    return True


def make_parser() -> MarkdownIt:
    """CommonMark with tables, strike-through and LaTeX, without HTML; only the blocks are parsed by `parse`."""
    md = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST}).enable(["table", "strikethrough"])
    inline = PlacingParser()
    inline.ruler.enableOnly(md.get_active_rules()["inline"])
    inline.ruler2.enableOnly(["balance_pairs", "strikethrough", "emphasis"])  # joined text would lose its places
    inline.ruler.before("escape", "math", _inline_math)
    md.inline = inline
    md.block.ruler.before("fence", "math_block", _block_math, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    md.core.ruler.enableOnly(["block"])
    return md
