"""Formatted replies in the window: tints, ghosts and copies as they were, cards of code, hostile texts, long ones."""

from __future__ import annotations

import random
import time

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QFont, QGuiApplication, QTextCursor, QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import theme
from app.markdown.lines import NOTHING, LineKind
from app.ui.conversation_view import ConversationView
from app.ui.reply_view import ReplyView
from app.widgets.token_segments import Segment
from app.widgets.token_spans import SpanKind
from app.widgets.token_text import TokenText
from engine.records import CycleEvent
from reply_builders import cycle, finished

SOURCE = """## A **heading**

Text with *words*, `code` and [a link](https://example.org/x).

1. first **item**
2. second
   - nested

> quoted

| name | speed |
|:--|--:|
| plain | 69 |
| draft | 155 |

```python
def f(x):  # a comment
    return "text" + x
```

中文**重点**。
"""


def cycles(source: str, seed: int = 3, ghosts: float = 0.3) -> list[CycleEvent]:
    """The source in tokens of two to six characters, some with a rejected guess before them."""
    rng, tokens, place = random.Random(seed), [], 0
    while place < len(source):
        length = rng.randint(2, 6)
        tokens.append(source[place : place + length])
        place += length
    events = []
    while tokens:
        count = min(rng.randint(1, 4), len(tokens))
        *accepted, last = tokens[:count]
        events.append(cycle(len(events), accepted, last, [" guess"] if rng.random() < ghosts else []))
        del tokens[:count]
    return events


@pytest.fixture
def reply(qapp: QApplication, qtbot: QtBot) -> ReplyView:
    theme.apply(qapp, "light")
    view = ReplyView()
    qtbot.addWidget(view)
    view.resize(700, 600)
    view.show()
    view.text.set_reduced_motion(True)
    return view


def written(view: ReplyView, source: str, ghosts: float = 0.3) -> ReplyView:
    for event in cycles(source, ghosts=ghosts):
        view.append(event)
    view.append(finished())
    return view


def shown(text: TokenText) -> str:
    return text.toPlainText().replace(NOTHING, "").replace("\u2009", "")


def kinds(text: TokenText) -> list[int]:
    document = text.document()
    return [document.findBlockByNumber(i).userState() for i in range(document.blockCount())]


def copied(text: TokenText) -> str:
    text.selectAll()
    return text.createMimeDataFromSelection().text()


def marks(text: TokenText) -> list[Segment]:
    return text.marks.between(text._reply, text._reply.spans, 0, text.height())


def font_at(text: TokenText, words: str) -> QFont:
    cursor = QTextCursor(text.document())
    cursor.setPosition(text.toPlainText().index(words) + 1)
    return cursor.charFormat().font()


def test_markup_is_gone_from_sight_and_kept_in_copies(reply: ReplyView) -> None:
    text = written(reply, SOURCE).text
    assert shown(text).startswith(
        "A heading\n\nText with words, code and a link.\n\n1. first item\n2. second\n◦ nested"
    )
    assert "**" not in shown(text) and "```" not in shown(text) and "|" not in shown(text)
    assert copied(text) == reply.source_text() == SOURCE
    reply.copy()
    assert QGuiApplication.clipboard().text() == SOURCE


def test_fonts_follow_the_markup(reply: ReplyView) -> None:
    text = written(reply, SOURCE, ghosts=0).text
    usual = font_at(text, "Text with")
    assert font_at(text, "heading").pointSizeF() > usual.pointSizeF()
    assert font_at(text, "重点").weight() == QFont.Weight.DemiBold > usual.weight()
    assert font_at(text, "words").italic() and not usual.italic()
    assert font_at(text, "code").families() != usual.families()


def test_tints_and_states_lie_on_the_same_tokens_in_both_views(reply: ReplyView) -> None:
    """Each token's mark covers what is seen of that token and nothing else."""
    text = written(reply, SOURCE).text
    document, spans = text.document(), text.spans
    for index in range(len(spans)):
        said = document.toRawText()[spans.starts[index] : spans.starts[index] + spans.length(index)]
        if spans.kinds[index] is not SpanKind.GHOST:
            seen = said.replace(NOTHING, "").replace("\u2029", "\n")
            rest = iter(spans.texts[index])
            allowed = seen.replace("\t", "|").replace("•", "-").replace("◦", "-")
            assert all(character in rest for character in allowed), (spans.texts[index], seen)
    before = [(mark.kind, mark.cycle) for mark in marks(text)]
    image, wash = text.grab().toImage(), theme.LIGHT.accepted_wash.lower()
    for mark in [mark for mark in marks(text) if mark.kind is SpanKind.ACCEPTED and mark.rect.width() > 12]:
        left = text.viewport().pos() + mark.rect.bottomLeft().toPoint()
        row = {image.pixelColor(left.x() + x, left.y() - 1).name() for x in range(2, int(mark.rect.width()) - 2)}
        assert wash in row, text.spans.texts[mark.first]
    reply._raw.trigger()
    raw = {(mark.kind, mark.cycle) for mark in marks(text)}
    assert {kind for kind, _ in before} <= {kind for kind, _ in raw} and set(before) <= raw
    reply._raw.trigger()
    assert [(mark.kind, mark.cycle) for mark in marks(text)] == before


def test_text_that_came_in_pieces_looks_as_if_it_had_come_at_once(reply: ReplyView, qtbot: QtBot) -> None:
    def looks(text: TokenText) -> list[tuple[str, int, float, float, int]]:
        document, found = text.document(), []
        for i in range(document.blockCount()):
            block = document.findBlockByNumber(i)
            form = block.blockFormat()
            found.append((block.text(), block.userState(), form.leftMargin(), form.textIndent(), form.headingLevel()))
        return found

    written(reply, SOURCE)
    other = ReplyView()
    qtbot.addWidget(other)
    other.resize(reply.size())
    other.show()
    other.text.set_reduced_motion(True)
    other.append_many([*cycles(SOURCE), finished()])
    assert looks(other.text) == looks(reply.text)
    assert [(m.kind, m.rect) for m in marks(other.text)] == [(m.kind, m.rect) for m in marks(reply.text)]


def test_ghosts_come_and_go_in_formatted_text(reply: ReplyView) -> None:
    text = written(reply, SOURCE).text
    calm = shown(text)
    reply.set_keep_ghosts(True)
    assert shown(text).count("guess") == sum(bool(event.ghosts) for event in cycles(SOURCE)) > 5
    assert copied(text) == SOURCE
    reply.set_keep_ghosts(False)
    assert shown(text) == calm and copied(text) == SOURCE


def test_columns_make_room_for_their_ghosts(reply: ReplyView) -> None:
    source = "| a | b |\n|---|---|\n| one | two |\n| three | four |\n\nend"
    reply.append(cycle(0, [], source[:22]))
    reply.append(cycle(1, [], source[22:], [" a rather long guess"]))
    reply.append(finished())

    def column() -> set[float]:
        text, found = reply.text, set()
        for number in (0, 2, 3):
            block = text.document().findBlockByNumber(number)
            place = block.text().index("\t") + 1
            found.add(round(block.layout().lineAt(0).cursorToX(place)[0]))  # type: ignore[index]
        return found

    assert len(column()) == 1, "the second cells stand one below the other"
    before = column()
    reply.set_keep_ghosts(True)
    assert (len(column()) == 1 and column() > before) or min(column()) > min(before)
    reply.set_keep_ghosts(False)
    assert column() == before


def test_the_unfinished_end_is_formatted_while_it_grows(reply: ReplyView) -> None:
    text = reply.text
    text._reply.markdown._due = 0
    reply.append(cycle(0, [], "a **bo"))
    assert shown(text) == "a **bo"
    text._reply.markdown._due = 0
    reply.append(cycle(1, [], "ld** end"))
    assert shown(text) == "a bold end" and font_at(text, "bold").weight() == QFont.Weight.DemiBold
    first = marks(text)[0].rect
    assert abs(first.right() - text.token_rect(1).left()) < 4, "marks follow the new widths"


def test_finished_blocks_are_not_parsed_again(reply: ReplyView) -> None:
    paragraph = "Some **words** of a paragraph that is not very long.\n\n"

    def parsed(count: int) -> int:
        reply.restart()
        for event in cycles(paragraph * count, ghosts=0):
            reply.text._reply.markdown._due = 0
            reply.append(event)
        return reply.text._reply.markdown.parsed

    assert parsed(40) < 4.5 * parsed(10)


def test_a_selection_stays_on_its_text_while_the_end_is_formatted(reply: ReplyView) -> None:
    text = reply.text
    reply.append(cycle(0, [], "first **words"))
    cursor = text.textCursor()
    cursor.setPosition(0)
    cursor.setPosition(8, QTextCursor.MoveMode.KeepAnchor)
    text.setTextCursor(cursor)
    text._reply.markdown._due = 0
    reply.append(cycle(1, [], "** more"))
    assert text.createMimeDataFromSelection().text() == "first **"


# Code


def test_code_is_copied_as_it_was_written(reply: ReplyView) -> None:
    text = written(reply, SOURCE).text
    table, code = text.cards.cards
    assert table.copy_button is None and code.copy_button is not None
    assert code.copy_button.accessibleName() == "Copy code"
    code.copy_button.click()
    assert QGuiApplication.clipboard().text() == 'def f(x):  # a comment\n    return "text" + x'


def test_code_in_lists_and_quotations_is_copied_without_their_indent(reply: ReplyView) -> None:
    source = "- item\n\n  ```sh\n  if x\n    y\n  ```\n\n> ```\n> quoted\n> ```\n\n"
    source += "1. deep\n   - in\n\n     ```\n     z\n       w\n     ```\n"
    text = written(reply, source).text
    assert [card.code() for card in text.cards.cards] == ["if x\n  y", "quoted", "z\n  w"]


def test_finished_code_is_coloured_a_little_at_a_time(reply: ReplyView, qtbot: QtBot) -> None:
    text = written(reply, SOURCE).text
    qtbot.waitUntil(lambda: not text._reply.colours.working)

    def colour(words: str) -> str:
        cursor = QTextCursor(text.document())
        cursor.setPosition(text.toPlainText().index(words) + 1)
        return cursor.charFormat().foreground().color().name()

    light = theme.LIGHT
    assert colour("def") == light.accent.lower() and colour("# a comm") == light.text3.lower()
    assert copied(text) == SOURCE
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    theme.apply(app, "dark")
    assert colour("def") == theme.DARK.accent.lower(), "colours are of the theme"
    assert colour("a link") == theme.DARK.accent.lower()


def test_a_long_line_scrolls_inside_its_card(reply: ReplyView, qtbot: QtBot) -> None:
    source = "before\n\n```text\nshort\n" + "wide " * 60 + "\n```\n\nafter"
    text = written(reply, source, ghosts=0).text
    card = text.cards.cards[0]
    assert card.bar is not None and card.bar.isVisible() and card.bar.maximum() > 500
    assert text.horizontalScrollBar().maximum() == 0, "the text itself stays"
    last = len(text.spans) - 1
    while "wide" not in text.spans.texts[last]:
        last -= 1
    assert text.token_rect(last).left() > text.viewport().width()
    wheel = QWheelEvent(QPointF(50, card.top + 40), QPointF(), QPoint(), QPoint(-4000, 0), Qt.MouseButton.NoButton,
                        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False)  # fmt: skip
    text.wheelEvent(wheel)
    assert wheel.isAccepted() and card.bar.value() == card.bar.maximum()
    assert 0 < text.token_rect(last).left() < text.viewport().width()
    found = text.token_at(text.token_rect(last).center())
    assert found is not None and found.index == last, "tokens are pointed at where they are seen"
    assert copied(text) == source
    down = QWheelEvent(QPointF(50, card.top + 40), QPointF(), QPoint(), QPoint(0, -120), Qt.MouseButton.NoButton,
                       Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False)  # fmt: skip
    text.wheelEvent(down)
    assert not down.isAccepted(), "the conversation scrolls"


def test_a_card_that_fits_has_no_bar_and_raw_text_has_no_cards(reply: ReplyView) -> None:
    text = written(reply, SOURCE).text
    assert all(card.bar is None for card in text.cards.cards)
    reply._raw.trigger()
    assert text.cards.cards == [] and set(kinds(text)) == {LineKind.TEXT}
    reply._raw.trigger()
    assert len(text.cards.cards) == 2


def test_a_picture_has_its_code_coloured_and_wrapped_and_nothing_to_press(reply: ReplyView) -> None:
    reply.for_a_still()
    text = written(reply, "```python\ndef f():\n    return " + "1 + " * 80 + "1\n```\n", ghosts=0).text
    assert text.cards.cards == [] and not text._reply.colours.working
    cursor = QTextCursor(text.document())
    cursor.setPosition(text.toPlainText().index("def") + 1)
    assert cursor.charFormat().foreground().color().name() == theme.LIGHT.accent.lower()
    assert text.document().idealWidth() <= text.viewport().width() + 1


# Hostile and long texts


@pytest.mark.parametrize(
    "source",
    [
        "<b>bold</b> <script>alert(1)</script>\n\n<div>\n\nx",
        "```python\nnever closed\n" + "x = 1\n" * 50,
        "\n".join("  " * i + "- x" for i in range(120)),
        "> " * 300 + "deep",
        "a\u202eb\x00\x1b[2Jc" + "e" + "\u0301" * 500 + "\ufffd\r\nend",
        "| a |\n|---|\n" + "| " + "cell " * 400 + "|\n",
        "**" * 400 + "\n" + "_a" * 400,
        "~~~\n```\n~~~\n\n````\n```\n````\n",
        "1. a\n   ```\n   b\n   ```\n2. c\n\n    indented\n",
        "[" * 300 + "](" * 300,
    ],
    ids=lambda source: repr(source[:10]),
)
def test_hostile_replies_are_shown_and_copied_whole(reply: ReplyView, qtbot: QtBot, source: str) -> None:
    text = written(reply, source).text
    assert copied(text) == source == reply.source_text()
    for _ in range(2):
        reply._raw.trigger()
        qtbot.waitUntil(lambda: not text.relaying, timeout=10_000)
    assert copied(text) == source
    assert "\u202e" not in text.toPlainText() and "\x1b" not in text.toPlainText()
    text.grab()


def test_a_megabyte_on_one_line_is_shown_in_pieces(reply: ReplyView) -> None:
    reply.text.set_live(True)
    word = "**word** " * 1000
    for i in range(112):
        reply.append(cycle(i, [], word))
    assert len(reply.source_text()) == 112 * 9000
    assert reply.text._reply.markdown.parsed < 10_000, "an endless line is not formatted"
    longest = max(
        reply.text.document().findBlockByNumber(i).length() for i in range(reply.text.document().blockCount())
    )
    assert longest < 2 * len(word)


def thread_seconds(view: ReplyView, events: list[CycleEvent]) -> float:
    began = time.thread_time()
    view.append_many(list(events))
    QApplication.processEvents()
    return time.thread_time() - began


def test_twenty_thousand_tokens_of_markdown_never_hold_the_window(qapp: QApplication, qtbot: QtBot) -> None:
    theme.apply(qapp, "light")
    conversation = ConversationView()
    qtbot.addWidget(conversation)
    conversation.resize(900, 800)
    conversation.show()
    view = conversation.begin_reply()
    events = cycles(SOURCE * 310, ghosts=0.1)
    assert sum(len(event.pieces) for event in events) > 20_000
    frames = [events[i : i + 4] for i in range(0, len(events), 4)]
    for frame in frames[:-60]:
        view.append_many(list(frame))
    qtbot.waitUntil(lambda: not view.text._reply.colours.working, timeout=30_000)
    gaps = sorted(thread_seconds(view, frame) for frame in frames[-60:])
    assert len(view.text.cards.cards) > 600
    assert gaps[len(gaps) // 2] < 0.04 and gaps[-1] < 0.15, "seconds of this thread, with room for a slow machine"
    assert len(view.text._reply.markdown._tail.text) < 500
