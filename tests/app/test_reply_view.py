"""One reply from its events: progress, figures, endings, actions; its counts and its timeline."""

from __future__ import annotations

from collections import defaultdict

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QEnterEvent, QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import theme
from app.ui.reply_view import ReplyView
from app.widgets.cycle_timeline import FITTING, MIN_BAR, Bar, _collect_outcomes
from engine.records import PrefillProgress, StopReason
from engine.statistics import ReplyStatistics
from reply_builders import cycle, finished, long_reply, sibling_cycle


@pytest.fixture
def reply(qapp: QApplication, qtbot: QtBot) -> ReplyView:
    theme.apply(qapp, "light")
    view = ReplyView()
    qtbot.addWidget(view)
    view.resize(700, 300)
    view.show()
    return view


def some(reply: ReplyView) -> None:
    reply.append(cycle(0, [" one", " two"], " three"))
    reply.append(cycle(1, [" four"], " five", [" wrong", " more"]))


def test_prefill_is_told_in_tokens_until_the_first_text(reply: ReplyView) -> None:
    reply.append(PrefillProgress(1120, 4480, 0))
    assert reply._progress.text() == "Reading the prompt… 1,120 of 4,480 tokens"
    assert reply._progress.isVisible()
    some(reply)
    assert not reply._progress.isVisible()
    assert reply.text.isVisible()


def test_statistics_are_announced_with_every_batch(reply: ReplyView, qtbot: QtBot) -> None:
    seen: list[ReplyStatistics] = []
    reply.statistics_changed.connect(seen.append)
    some(reply)
    assert [s.cycles for s in seen] == [1, 2]
    assert seen[-1] == reply.statistics()
    reply.append_many([cycle(2, [" six"], " seven"), cycle(3, [" six"], " seven")])
    assert [s.cycles for s in seen] == [1, 2, 4]


def test_counts_name_every_state(reply: ReplyView) -> None:
    some(reply)
    reply.append(cycle(2, [], " plain"))
    reply.append(finished())
    assert reply.counts.summary() == "accepted 3, rejected 1, corrections 1, bonus 1, plain 1"
    rejected = reply.counts.counts()[1]
    assert "1 more drafts came after a wrong one and were not tested" in rejected.help
    assert reply.text.accessibleDescription() == reply.counts.summary()


def test_without_speculation_only_plain_is_counted(reply: ReplyView) -> None:
    for i in range(3):
        reply.append(cycle(i, [], " x"))
    reply.append(finished())
    assert reply.counts.summary() == "plain 3"
    assert "plain" not in reply._figures.text() and "accepted" not in reply._figures.text()


def test_figures_of_a_finished_reply(reply: ReplyView) -> None:
    some(reply)
    reply.append(finished(tail=" end"))
    s = reply.statistics()
    assert s.tokens_per_second is not None and s.speed_up is not None
    assert reply._figures.text() == f"{s.tokens_per_second:.1f} tok/s · 75 % accepted · {s.speed_up:.1f}× plain"
    assert reply.source_text() == " one two three four five end"
    assert reply.is_finished()


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (StopReason.STOPPED, "Stopped · "),
        (StopReason.LENGTH, "Ended at the length limit · "),
        (StopReason.CONTEXT_FULL, "Ended because the context is full · "),
    ],
)
def test_endings_are_quiet_words(reply: ReplyView, reason: StopReason, words: str) -> None:
    some(reply)
    reply.append(finished(reason))
    assert reply._figures.text().startswith(words)
    assert not reply._failure.isVisible()


def test_failure_shows_its_message_and_keeps_the_text(reply: ReplyView) -> None:
    some(reply)
    reply.append(finished(StopReason.FAILED, message="The GPU ran out of memory: 1.2 GB more were needed."))
    assert reply._failure.isVisible()
    assert "The GPU ran out of memory" in reply._failure.text()
    colour = reply._failure.palette().color(reply._failure.foregroundRole())
    assert colour.name() == theme.LIGHT.error.lower()
    assert reply.source_text() == " one two three four five"


def test_reply_without_tokens_says_so(reply: ReplyView) -> None:
    reply.append(PrefillProgress(10, 40, 0))
    reply.append(finished(StopReason.STOPPED))
    assert reply._figures.text() == "Stopped · no tokens"
    assert not reply._progress.isVisible()
    assert not reply.copy_button.isEnabled()


def test_copy_and_regenerate(reply: ReplyView, qtbot: QtBot) -> None:
    some(reply)
    reply.append(finished())
    qtbot.mouseClick(reply.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == " one two three four five"
    with qtbot.waitSignal(reply.regenerate_requested):
        qtbot.mouseClick(reply.regenerate_button, Qt.MouseButton.LeftButton)


def test_old_replies_hide_cycles_and_marks_until_asked(reply: ReplyView) -> None:
    some(reply)
    reply.append(finished())
    assert reply.timeline.isVisible() and reply.text._tinted
    QApplication.sendEvent(reply, QEvent(QEvent.Type.Leave))
    reply.set_old(True)
    assert not reply.timeline.isVisible() and not reply.text._tinted
    point = QPointF(5, 5)
    QApplication.sendEvent(reply, QEnterEvent(point, point, point))
    assert reply.text._tinted and not reply.timeline.isVisible()
    QApplication.sendEvent(reply, QEvent(QEvent.Type.Leave))
    assert not reply.text._tinted
    reply._details.setChecked(True)
    assert reply.timeline.isVisible() and reply.text._tinted


def test_selecting_a_cycle_marks_text_and_timeline(reply: ReplyView, qtbot: QtBot) -> None:
    some(reply)
    reply.append(finished())
    bar = reply.timeline.bars()[1]
    point = QPoint(int(bar.left + bar.width / 2), 10)
    qtbot.mouseClick(reply.timeline, Qt.MouseButton.LeftButton, pos=point)
    assert reply.text._selected_cycle == 1
    qtbot.keyClick(reply.timeline, Qt.Key.Key_Left)
    assert reply.text._selected_cycle == 0
    reply.text.cycle_clicked.emit(1)
    assert reply.timeline._selected == 1


def test_a_token_can_be_clicked_before_the_timeline_was_refreshed(reply: ReplyView) -> None:
    some(reply)
    reply.text.cycle_clicked.emit(1)
    assert reply.timeline._selected == 1 and len(reply.timeline.bars()) == 2


def test_timeline_bars_are_as_wide_as_their_time(reply: ReplyView) -> None:
    reply.append(cycle(0, [" a"] * 2, " b"))
    reply.append(cycle(1, [" a"] * 9, " b"))
    reply.refresh()
    first, second = reply.timeline.bars()
    records = reply.timeline._records
    assert second.width / first.width == pytest.approx(records[1].seconds / records[0].seconds)


def test_timeline_scrolls_when_there_are_many(reply: ReplyView) -> None:
    reply.append_many(list(long_reply(5 * (FITTING + 300))))
    reply.refresh()
    bars = reply.timeline.bars()
    assert bars[-1].number == FITTING + 299, "the newest is in view"
    assert min(bar.width for bar in bars) >= MIN_BAR
    assert bars[-1].left + bars[-1].width <= reply.timeline.width()
    reply.timeline.select(5)
    assert 5 in [bar.number for bar in reply.timeline.bars()]
    reply.timeline.select(FITTING + 299)
    assert reply.timeline.bars()[-1].number == FITTING + 299


def test_timeline_tells_a_cycle_in_words(reply: ReplyView) -> None:
    some(reply)
    reply.refresh()
    assert reply.timeline.description(1) == (
        "Cycle 2: 1 of 3 drafts accepted, 2 tokens. Draft 30.0 ms, verify 50.0 ms, transfer wait 20.0 ms."
    )


def test_a_cycle_with_a_second_choice_adds_up(reply: ReplyView) -> None:
    reply.append(sibling_cycle(0, [" one"], " two", " three", [" wrong", " tail"]))
    reply.append(finished())
    assert reply.counts.summary() == "accepted 2, rejected 1, corrections 0, bonus 1"
    assert reply.timeline.description(0).startswith("Cycle 1: 2 of 4 drafts accepted, 3 tokens.")
    dots: dict[str, list[QPointF]] = defaultdict(list)
    record = sibling_cycle(0, [" one"], " two", " three", [" wrong", " tail"]).record
    _collect_outcomes(record, Bar(0, 0.0, 60.0), dots)
    order = sorted((point.x(), role) for role, points in dots.items() for point in points)
    assert [role for _, role in order] == ["accepted", "rejected", "untested", "accepted", "bonus"]


def test_timeline_paints_outcomes_and_times(reply: ReplyView) -> None:
    some(reply)
    reply.refresh()
    image = reply.timeline.grab().toImage()
    seen = {image.pixelColor(x, y).name() for x in range(120) for y in range(image.height())}
    for role in ("draft", "verify", "wait"):
        assert getattr(theme.LIGHT, role).lower() in seen, role


def test_every_control_has_a_name(reply: ReplyView) -> None:
    from PySide6.QtWidgets import QAbstractButton

    some(reply)
    reply.append(finished())
    assert all(button.accessibleName() or button.text() for button in reply.findChildren(QAbstractButton))
    assert reply.text.accessibleName() and reply.timeline.accessibleName() and reply.counts.accessibleName()
