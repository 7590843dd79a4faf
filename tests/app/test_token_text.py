"""The streaming text: marks by state, ghosts, copies, tooltips, long replies."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QImage, QTextCursor
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import theme
from app.markdown.lines import LineKind
from app.widgets.ghosts import FADE_SECONDS
from app.widgets.token_segments import Segment
from app.widgets.token_spans import SpanKind
from app.widgets.token_text import TokenText
from app.widgets.token_words import describe
from reply_builders import cycle, long_reply, sibling_cycle


class Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def text(qapp: QApplication, qtbot: QtBot, clock: Clock) -> TokenText:
    theme.apply(qapp, "light")
    widget = TokenText(clock=clock)
    widget.set_reduced_motion(False)
    qtbot.addWidget(widget)
    widget.resize(600, 100)
    widget.show()
    return widget


def marks(text: TokenText) -> list[Segment]:
    return text.marks.between(text._reply, text._reply.spans, 0, text.height())


def of_kind(text: TokenText, kind: SpanKind) -> list[Segment]:
    return [mark for mark in marks(text) if mark.kind is kind]


def colours(image: QImage, mark: Segment, text: TokenText, below: int = 0) -> set[str]:
    """Colours inside a mark's rectangle, or in the rows just below it."""
    rect = mark.rect.toRect().translated(text.viewport().pos())
    rows = range(rect.bottom() + 1, rect.bottom() + 1 + below) if below else range(rect.top(), rect.bottom())
    return {image.pixelColor(x, y).name() for x in range(rect.left() + 1, rect.right() - 1) for y in rows}


def copied(text: TokenText) -> str:
    text.selectAll()
    return text.createMimeDataFromSelection().text()


def all_states(text: TokenText) -> None:
    text.append_cycle(cycle(0, [], "Plain"))
    text.append_cycle(cycle(1, [" accepted", " run"], " bonus"))
    text.append_cycle(cycle(2, [" more"], " right", [" wrong", " tail"]))


def test_each_state_is_painted_in_its_form(text: TokenText) -> None:
    all_states(text)
    image = text.grab().toImage()
    look = theme.LIGHT
    wash, amber, blue = look.accepted_wash.lower(), look.correction.lower(), look.bonus.lower()
    accepted, bonus = of_kind(text, SpanKind.ACCEPTED)[0], of_kind(text, SpanKind.BONUS)[0]
    correction, plain = of_kind(text, SpanKind.CORRECTION)[0], of_kind(text, SpanKind.PLAIN)[0]
    assert wash in colours(image, accepted, text)
    assert wash not in colours(image, correction, text)
    assert wash not in colours(image, plain, text)
    assert amber in colours(image, correction, text, below=3)
    assert amber not in colours(image, plain, text, below=3)
    assert blue in colours(image, bonus, text, below=3)
    assert look.canvas.lower() in colours(image, bonus, text, below=2), "dots leave gaps"


def test_one_wash_is_one_run_without_its_leading_space(text: TokenText) -> None:
    all_states(text)
    run = of_kind(text, SpanKind.ACCEPTED)[0]
    metrics = text.fontMetrics()
    assert len(of_kind(text, SpanKind.ACCEPTED)) == 2, "one for each cycle"
    left = text._reply.documentLayout().blockBoundingRect(text._reply.firstBlock()).left()
    assert run.rect.left() > left + metrics.horizontalAdvance("Plain") * 0.9
    assert run.rect.right() <= of_kind(text, SpanKind.BONUS)[0].rect.left()


def test_run_over_two_lines_has_a_wash_on_each(text: TokenText) -> None:
    text.append_cycle(cycle(0, [" several words"] * 12, " end"))
    washes = of_kind(text, SpanKind.ACCEPTED)
    assert len({wash.rect.top() for wash in washes}) == len(washes) > 1
    assert all(wash.rect.right() <= text.viewport().width() for wash in washes)


def test_untinted_text_shows_no_marks(text: TokenText) -> None:
    all_states(text)
    text.set_tinted(False)
    image = text.grab().toImage()
    assert theme.LIGHT.accepted_wash.lower() not in colours(image, of_kind(text, SpanKind.ACCEPTED)[0], text)


def test_high_contrast_underlines_accepted_text(text: TokenText, qapp: QApplication) -> None:
    theme.apply(qapp, "high-contrast-light")
    all_states(text)
    image = text.grab().toImage()
    accepted = of_kind(text, SpanKind.ACCEPTED)[0]
    assert theme.LIGHT.accepted_wash.lower() not in colours(image, accepted, text)
    under = colours(image, accepted, text, below=3)
    assert any(QColor(c).green() > QColor(c).red() + 20 for c in under)


def test_ghost_is_struck_through_and_fades_to_a_tick(text: TokenText, clock: Clock) -> None:
    all_states(text)
    assert " wrong" in text.toPlainText()
    assert "tail" not in text.toPlainText(), "drafts that were never tested are told in words only"
    cursor = QTextCursor(text.document())
    cursor.setPosition(text.toPlainText().index("wrong") + 1)
    assert cursor.charFormat().fontStrikeOut()
    assert text._timer.isActive()
    clock.now += FADE_SECONDS * 0.9
    text.fade()
    assert "wrong" in text.toPlainText()
    clock.now += FADE_SECONDS * 0.2
    text.fade()
    assert "wrong" not in text.toPlainText()
    assert not text._timer.isActive()
    tick = of_kind(text, SpanKind.GHOST)[0]
    assert text._reply.spans.length(tick.first) == 1
    below = {
        text.grab().toImage().pixelColor(x, y).name()
        for x in range(int(tick.rect.left()) - 1, int(tick.rect.right()) + 5)
        for y in range(int(tick.rect.bottom()) - 2, int(tick.rect.bottom()) + 4)
    }
    assert any(QColor(c).lightness() < 160 for c in below), "the tick can be seen"


def test_fading_ghost_grows_paler(text: TokenText, clock: Clock) -> None:
    all_states(text)
    ghost = of_kind(text, SpanKind.GHOST)[0]

    def darkest() -> int:
        return min(QColor(c).lightness() for c in colours(text.grab().toImage(), ghost, text))

    fresh = darkest()
    clock.now += FADE_SECONDS * 0.8
    assert darkest() > fresh + 30


def test_keep_ghosts_brings_them_back_and_lets_them_go(text: TokenText, clock: Clock) -> None:
    all_states(text)
    text.append_cycle(cycle(3, [" and"], " 好", ["坏"]))
    clock.now += 2 * FADE_SECONDS
    text.fade()
    faded = text.toPlainText()
    text.set_keep_ghosts(True)
    assert "wrong" in text.toPlainText() and "坏" in text.toPlainText()
    text.append_cycle(cycle(4, [], " x", [" kept"]))
    assert "kept" in text.toPlainText() and not text._timer.isActive()
    text.set_keep_ghosts(False)
    assert text.toPlainText().startswith(faded) and "kept" not in text.toPlainText()
    assert copied(text) == text.source_text() == "Plain accepted run bonus more right and 好 x"


def test_reduced_motion_goes_straight_to_the_tick(text: TokenText) -> None:
    text.set_reduced_motion(True)
    all_states(text)
    assert "wrong" not in text.toPlainText()
    assert not text._timer.isActive()
    assert len(of_kind(text, SpanKind.GHOST)) == 1


SOURCE = "1. list\n2. item with\ttab\n\n```python\nif a:\n    b = 1\u00a0+ 2\n```\n\nend\r\nlast 😀\u2029x\n"


def test_copy_gives_the_source_exactly(text: TokenText) -> None:
    pieces = [SOURCE[i : i + 3] for i in range(0, len(SOURCE), 3)]
    text.set_keep_ghosts(True)
    for i, piece in enumerate(pieces):
        text.append_cycle(cycle(i, [], piece, [" ghost\n"]))
    text.append_tail("tail")
    text.set_live(False)
    assert text.source_text() == SOURCE + "tail"
    assert copied(text) == SOURCE + "tail"


def test_partial_copy_leaves_ghosts_out(text: TokenText) -> None:
    text.set_keep_ghosts(True)
    all_states(text)
    plain = text.toPlainText()
    cursor = text.textCursor()
    cursor.setPosition(plain.index("more"))
    cursor.setPosition(plain.index("right") + 3, QTextCursor.MoveMode.KeepAnchor)
    text.setTextCursor(cursor)
    assert "wrong" in cursor.selectedText()
    assert text.createMimeDataFromSelection().text() == "more rig"


def test_selection_stays_while_text_arrives(text: TokenText) -> None:
    text.append_cycle(cycle(0, [" first"], " end"))
    text.selectAll()
    text.append_cycle(cycle(1, [" more"], " text"))
    assert text.createMimeDataFromSelection().text() == " first end"


def test_characters_that_complete_late_carry_the_state_of_their_last_token(text: TokenText) -> None:
    text.append_cycle(cycle(0, ["", "", ""], "😀"))
    text.append_cycle(cycle(1, ["你", ""], "好", [""]))
    assert text.source_text() == "😀你好"
    kinds = [mark.kind for mark in marks(text)]
    assert kinds == [SpanKind.BONUS, SpanKind.ACCEPTED, SpanKind.CORRECTION]


def test_tooltips_say_state_cycle_position_and_probabilities(text: TokenText) -> None:
    text.set_keep_ghosts(True)
    all_states(text)
    words = {mark.kind: text.description(text._reply.spans.span(mark.first)) for mark in marks(text)}
    assert words[SpanKind.PLAIN] == "plain: step 1, decoded without a draft (0.61)."
    assert "cycle 3, draft position 1 of 3" in words[SpanKind.ACCEPTED]
    assert "draft gave it 0.90, the full model 0.80" in words[SpanKind.ACCEPTED]
    assert "cycle 2. All 2 drafts were accepted" in words[SpanKind.BONUS]
    correction = words[SpanKind.CORRECTION]
    assert "correction: cycle 3, draft position 2 of 3" in correction
    assert "proposed “wrong” (0.80), the full model chose this (0.61)" in correction
    ghost = words[SpanKind.GHOST]
    assert "proposed “wrong” (0.80); the full model gave it 0.70 and chose “right” (0.61)" in ghost
    assert "Not tested after it: “tail”." in ghost


def test_a_second_choice_stands_behind_the_ghost_of_the_first(text: TokenText) -> None:
    text.append_cycle(cycle(0, [], "It"))
    text.append_cycle(sibling_cycle(1, [" was"], " cold", " there", [" warm", " so"]))
    assert text.source_text() == "It was cold there"
    assert text.toPlainText().index("warm") < text.toPlainText().index("cold")
    kinds = [text._reply.spans.kinds[i] for i in range(len(text._reply.spans))]
    assert kinds == [SpanKind.PLAIN, SpanKind.ACCEPTED, SpanKind.GHOST, SpanKind.ACCEPTED, SpanKind.BONUS]
    words = [describe(text._reply.spans.span(i), text._events[1]) for i in range(1, 5)]
    assert words[0].startswith("accepted: cycle 2, draft position 1 of 3.")
    assert words[1] == (
        "rejected: cycle 2, draft position 2 of 3. The draft proposed “warm” (0.80); the full model gave it 0.70 "
        "and chose “cold” (0.66). Not tested after it: “so”."
    )
    assert words[2] == (
        "accepted: cycle 2, second choice at draft position 2 of 3, tried in the same pass. The draft gave it 0.21, "
        "the full model 0.66; its first choice “warm” (0.80) was wrong."
    )
    assert words[3] == (
        "bonus: cycle 2. The draft's second choice was accepted; "
        "the full model added this token in the same pass (0.61)."
    )


def test_braces_in_tokens_are_safe_in_tooltips(text: TokenText) -> None:
    text.append_cycle(cycle(0, ["{x}"], "{", ["}{0}"]))
    for mark in marks(text):
        assert text.description(text._reply.spans.span(mark.first))


def test_token_at_finds_the_token_under_the_pointer(text: TokenText) -> None:
    all_states(text)
    for mark in marks(text):
        found = text.token_at(mark.rect.center().toPoint())
        assert found is not None and found.kind is mark.kind and found.cycle == mark.cycle
    assert text.token_at(QPoint(590, 5)) is None


def test_clicking_a_token_names_its_cycle_and_selecting_outlines_it(text: TokenText, qtbot: QtBot) -> None:
    all_states(text)
    bonus = of_kind(text, SpanKind.BONUS)[0]
    with qtbot.waitSignal(text.cycle_clicked) as clicked:
        qtbot.mouseClick(text.viewport(), Qt.MouseButton.LeftButton, pos=bonus.rect.center().toPoint())
    assert clicked.args == [1]
    box = bonus.rect.toRect().translated(text.viewport().pos())

    def outlined() -> bool:
        image = text.grab().toImage()
        rows = range(max(0, box.top() - 4), box.top())
        above = [image.pixelColor(x, y) for x in range(box.left(), box.right()) for y in rows]
        return any(colour.blue() > colour.red() + 20 for colour in above)

    assert not outlined()
    text.select_cycle(1)
    assert outlined()


def test_fenced_code_lists_and_gaps_are_recognised(text: TokenText) -> None:
    text.append_cycle(cycle(0, list("a\n\n- item\n```py\nx = 1\n```\nb"), "."))
    text.set_live(False)
    document = text.document()
    kinds = [document.findBlockByNumber(i).userState() for i in range(document.blockCount())]
    assert kinds == [
        LineKind.TEXT,
        LineKind.GAP,
        LineKind.TEXT,
        LineKind.FENCE_OPEN,
        LineKind.CODE,
        LineKind.FENCE_CLOSE,
        LineKind.TEXT,
    ]
    assert document.findBlockByNumber(2).blockFormat().textIndent() < 0
    assert copied(text) == "a\n\n- item\n```py\nx = 1\n```\nb."


def test_height_follows_the_text(text: TokenText) -> None:
    text.append_cycle(cycle(0, ["one"], "\n"))
    before = text.height()
    text.append_cycle(cycle(1, ["two\n", "three\n"], "four"))
    assert text.height() == before + 50, "two lines more"
    end = text._reply.end_rect()
    assert end.bottom() <= text.viewport().height()


def test_caret_stands_at_the_live_end_only(text: TokenText) -> None:
    text.append_cycle(cycle(0, ["one"], " two"))

    def caret() -> bool:
        end = text._reply.end_rect()
        at = text.viewport().pos() + QPoint(int(end.right()) + 4, int(end.center().y()))
        return text.grab().toImage().pixelColor(at).name() == theme.LIGHT.accent.lower()

    assert not caret()
    text.set_live(True)
    assert caret()
    text.set_live(False)
    assert not caret()


def test_theme_change_recolours_kept_ghosts(text: TokenText, qapp: QApplication) -> None:
    text.set_keep_ghosts(True)
    all_states(text)
    theme.apply(qapp, "dark")
    cursor = QTextCursor(text.document())
    cursor.setPosition(text.toPlainText().index("wrong") + 1)
    assert cursor.charFormat().foreground().color() == QColor(theme.DARK.rejected)
    assert theme.DARK.accepted_wash.lower() in colours(text.grab().toImage(), of_kind(text, SpanKind.ACCEPTED)[0], text)


def test_a_word_of_twenty_thousand_characters_wraps(text: TokenText) -> None:
    word = "x" * 20_000
    for i in range(20):
        text.append_cycle(cycle(i, [word[:500]], word[:500]))
    text.set_live(False)
    assert text.width() == 600
    assert text.document().idealWidth() <= text.viewport().width() + 1
    assert copied(text) == word


def test_a_token_costs_the_same_after_twenty_thousand(text: TokenText, qapp: QApplication) -> None:
    """Structure, not time: what is laid out and worked out for a token does not depend on the reply's length."""
    text.set_live(True)
    text.set_keep_ghosts(True)
    events = long_reply(20_000)
    text.append_cycles(events[:-40])
    assert text.source_text().count("word") > 15_000
    band = text.height() - 200, text.height()
    text.marks.between(text._reply, text._reply.spans, *band)
    before = text.marks.worked_out
    for event in events[-40:]:
        text.append_cycle(event)
        text.marks.between(text._reply, text._reply.spans, text.height() - 200, text.height())
    assert text.marks.worked_out - before < 40 * 3
    assert len(text.marks._blocks) < 40, "only blocks that were in view are worked out"


def test_one_endless_paragraph_is_laid_out_in_pieces(text: TokenText) -> None:
    text.set_live(True)
    for i in range(600):
        text.append_cycle(cycle(i, [" some", " more"], " words", [" guess"] if i % 5 == 0 else []))
    longest = max(text.document().findBlockByNumber(i).length() for i in range(text.document().blockCount()))
    assert text.document().blockCount() > 5
    assert longest < 1100
    expected = " some more words" * 600
    assert copied(text) == expected
    text.set_live(False)
    text.resize(500, text.height())
    assert text.document().blockCount() == 1, "laid out anew as one paragraph for another width"
    assert copied(text) == expected
