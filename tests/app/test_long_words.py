"""Lines without a space, in a question, a reply and a code block: the window keeps its shape, copies are exact."""

from __future__ import annotations

import pytest
from fake_engine import FakeEngine
from PySide6.QtGui import QGuiApplication
from window_bench import Bench, BenchMaker

from app.ui.reply_view import ReplyView

LONG = "https://example.org/" + "a1B2" * 5_000
FENCED = f"Before.\n\n```text\n{LONG}\n```\n\nAfter."
LISTED = "1. one\n2. two\n\n```python\nif a:\n    b = 1\n```\n\nend"


def engine_saying(text: str) -> FakeEngine:
    engine = FakeEngine()
    engine.recording.cycles.clear()
    step = 700
    for start in range(0, len(text), step):
        engine.recording.cycle(plain=text[start : start + step])
    return engine


def shape(bench: Bench) -> tuple[int, ...]:
    window = bench.window
    return window.width(), window.minimumWidth(), bench.view.width(), window.composer.width(), window.side_bar.width()


@pytest.mark.parametrize("text", [LONG, FENCED], ids=["text", "fence"])
@pytest.mark.parametrize("width", [1440, 700])
def test_a_long_word_neither_widens_the_window_nor_leaves_the_column(
    benches: BenchMaker, text: str, width: int
) -> None:
    bench = benches(engine_saying(text))
    bench.window.resize(width, 700)
    bench.ready()
    bench.ask("One?")
    before = shape(bench)
    bench.window.chat.send(LONG)
    bench.qtbot.waitUntil(lambda: len(bench.said) == 4 and bench.said[-1] == text, timeout=10_000)
    bench.qtbot.wait(1)
    assert shape(bench) == before and before[0] == width
    for turn in bench.view.turns():
        right = turn.mapTo(bench.view, turn.rect().topRight()).x()
        assert right <= bench.view.width()
        if isinstance(turn, ReplyView):
            assert turn.text.document().idealWidth() <= turn.text.width() + 1


def test_copies_are_the_source(benches: BenchMaker) -> None:
    bench = benches(engine_saying(LISTED))
    bench.ready()
    bench.ask("One?")
    reply = bench.view.turns()[-1]
    assert isinstance(reply, ReplyView)
    reply.copy_button.click()
    copied = QGuiApplication.clipboard().text()
    reply.text.selectAll()
    assert copied == LISTED == reply.text.createMimeDataFromSelection().text()
    assert not {"\u2029", "\u00a0"} & set(copied)
