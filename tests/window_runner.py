"""The real program over an engine that is made up: python window_runner.py write|look|ask [FOLDER].

write: asks and has answered for ever, saying what came and when, to be killed. look: says what a start finds, and ends.
ask: the same after one question and its answer. FOLDER: where it keeps its files, the user's own by default.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fake_engine import FakeEngine
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from window_bench import text_of_bubble

from app.main import main, make_application
from app.states import HostState
from app.ui.main_window import MainWindow
from app.ui.reply_view import ReplyView
from engine.records import Event, Finished, StopReason
from engine.settings import GenerateRequest
from reply_builders import cycle

EVENT_SECONDS = 0.01
CYCLES = 150


class Talker(FakeEngine):
    """Writes numbers."""

    def generate(self, request: GenerateRequest) -> Iterator[Event]:
        asked = request.messages[-1].content.split()[-1]
        for number in range(CYCLES):
            time.sleep(EVENT_SECONDS)
            yield cycle(number, [f"{asked}.{number} ", "and "], "on ")
            say("event", f"{asked}.{number}")
        yield Finished(StopReason.END_TOKEN, "", 10, 0, 3 * CYCLES, 0.1, 1.0, 0)


def say(word: str, value: str) -> None:
    """A line for whoever kills us."""
    print(f"{word} {value} {time.monotonic()}", flush=True)


def window() -> MainWindow | None:
    """The window, once it is there."""
    return next((widget for widget in QApplication.topLevelWidgets() if isinstance(widget, MainWindow)), None)


class Writer:
    """Asks whenever the engine is ready."""

    def __init__(self) -> None:
        self._asked = 0

    def __call__(self) -> None:
        shown = window()
        if shown is not None and shown.history.is_open and shown._host.state is HostState.READY:
            self._asked += 1
            shown.chat.send(f"Question {self._asked}")


class Looker:
    """Says what there is once the history is read, after a question where one is to be asked, and closes the window."""

    def __init__(self, *, asks: bool) -> None:
        self._asks = asks

    def _answered(self, shown: MainWindow) -> bool:
        if not self._asks:
            return True
        if shown._host.state is HostState.READY and not shown.view.turns():
            shown.chat.send("Question 1")
        return shown._host.state is HostState.READY and shown.chat.last_finished is not None

    def __call__(self) -> None:
        shown = window()
        if shown is None or not shown.history.is_open:
            return
        if not self._answered(shown):
            return
        turns = shown.view.turns()
        said = [turn.source_text() if isinstance(turn, ReplyView) else text_of_bubble(turn) for turn in turns]
        kept = shown.history.read(lambda reader: reader.all("SELECT text FROM messages"))
        banner = "" if shown.view.banner.isHidden() else shown.view.banner.sentence()
        print(json.dumps({"banner": banner, "said": said, "kept": [text for (text,) in kept]}))
        shown.close()


def repeat(step: Callable[[], None]) -> None:
    """Call `step` every few milliseconds, as long as the program runs."""
    step()
    QTimer.singleShot(20, lambda: repeat(step))


if __name__ == "__main__":
    kind, folders = sys.argv[1], sys.argv[2:]
    step = Writer() if kind == "write" else Looker(asks=kind == "ask")
    make_application()  # the first step is due when its loop begins
    QTimer.singleShot(0, lambda: repeat(step))
    sys.exit(main([*(f"--data-dir={folder}" for folder in folders), "--model", str(Path(__file__).parent)], Talker))
