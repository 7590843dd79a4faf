"""A history of years: python benchmarks/history.py [CHATS] [FOLDER], 10,000 chats of 50 messages and one of 2,000.

The file is made anew in FOLDER (a temporary one by default), then the real window opens it, offscreen: the list is
scrolled from its first chat to its last, chats are searched for, and the long chat is opened.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle as cycled
from pathlib import Path

from figures import ROOT, Figure, report

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "app")]

from fake_engine import FakeEngine
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from app import theme
from app.history.copying import AddWholeChat
from app.history.opening import open_history
from app.history.packing import text_of
from app.history.rows import ASSISTANT, OVER, USER, ChatRow, Ids, StoredChat, StoredMessage, StoredReply
from app.host import EngineHost
from app.live_settings import LiveSettings
from app.main import make_application
from app.settings import AppSettings
from app.settings_store import SettingsStore
from app.ui.main_window import MainWindow
from engine.records import Event, Finished, StopReason
from reply_builders import cycle

MESSAGES, LONG = 50, 2000
WORDS = 20_000
QUERIES = (
    "{0}", "{0} {9}", "{19000} {3}", "{0:.2}", "{50:.3}", "{7:.4}", "{300:.5} {2:.4}", "推测", "解", "变改",
    "nothing like this", "rare needle", "title of 77",
)  # fmt: skip
"""In braces the number of a word, the most common one being 0, and how many of its letters."""
FRAME_MS, SEARCH_MS, OPEN_MS = 16.7, 100.0, 300.0
WHEEL = 120  # pixels a frame


def vocabulary() -> list[str]:
    """Words of two to four syllables, the most common ones first."""
    rng = random.Random(3)
    syllables = [
        first + vowel + last for first in "bdfgklmnprstvw" for vowel in "aeiou" for last in ("", "n", "r", "st")
    ]
    words: dict[str, None] = {}
    while len(words) < WORDS:
        words["".join(rng.choices(syllables, k=rng.choice((2, 2, 3, 4))))] = None
    return list(words)


def texts(rng: random.Random) -> Callable[[int], str]:
    """Texts whose words are as unequally common as those of a language; one in ten is Chinese."""
    words = vocabulary()
    weights = [1 / (rank + 3) for rank in range(len(words))]
    signs = "自推测解码会改变模型写出的内容吗每个草稿词元都要先经过完整检验猜错被替换"
    pool = rng.choices(words, weights, k=400_000)

    def text(count: int) -> str:
        if rng.random() < 0.1:
            return "".join(rng.choices(signs, k=2 * count))
        start = rng.randrange(len(pool) - count)
        return " ".join(pool[start : start + count])

    return text


def reply_events(count: int) -> tuple[Event, ...]:
    """A reply of so many cycles of five tokens."""
    cycles = [cycle(n, [" one", " two", " three"], " four", [" wrong"] if n % 3 else []) for n in range(count)]
    return (*cycles, Finished(StopReason.END_TOKEN, "", 10, 0, 4 * count, 0.1, 1.0, 0))


def make(folder: Path, chats: int) -> int:
    """Write the history; the number of its long chat."""
    rng, ids = random.Random(5), Ids()
    text = texts(rng)
    opened = open_history(folder)
    db = opened.db
    db.execute("PRAGMA synchronous = OFF")
    now = time.time()
    for number in range(chats):
        if number % 500 == 0:
            db.execute("BEGIN")
        said = ["rare needle" if number == chats // 2 else text(rng.randrange(5, 20) if n % 2 == 0 else 80)
                for n in range(MESSAGES)]  # fmt: skip
        whole(ids, f"The title of {number}", said, now - number * 3600, {}).apply(db)
        if number % 500 == 499 or number == chats - 1:
            db.execute("COMMIT")
    events = reply_events(25)
    said = [text(12) if n % 2 == 0 else "" for n in range(LONG)]
    long = whole(ids, "The long one", said, now + 1, {1: events})
    db.execute("BEGIN")
    long.apply(db)
    db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return long.chat.row.id


def whole(ids: Ids, title: str, said: list[str], at: float, events: dict[int, tuple[Event, ...]]) -> AddWholeChat:
    """A chat in which user and model take turns."""
    row = ChatRow(ids.next(), title, False, at, at)
    numbers = [ids.next() for _ in said]
    reply = StoredReply(events=events.get(1, ()))
    told = text_of(reply.events)
    messages = tuple(
        StoredMessage(number, parent, ASSISTANT if told_by else USER, OVER, at, told if told and told_by else words)
        for number, parent, told_by, words in zip(numbers, [None, *numbers], cycled((0, 1)), said, strict=False)
    )
    replies = {number: reply for n, number in enumerate(numbers) if n % 2} if told else {}
    return AddWholeChat(StoredChat(row, {}, "", numbers[-1], messages), replies)


class Bench:
    """The window on the folder."""

    def __init__(self, folder: Path) -> None:
        self.app: QApplication = make_application()
        self.waking = QTimer(interval=20)
        self.waking.start()
        theme.apply(self.app, "dark")
        settings = LiveSettings(SettingsStore(folder / "config"), AppSettings())
        start = time.perf_counter()
        self.window = MainWindow(EngineHost(FakeEngine), settings, history_folder=folder)
        self.window.show()
        self.until(lambda: self.window.history.is_open)
        self.opened_ms = (time.perf_counter() - start) * 1000

    def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Let Qt work until the condition holds. Exits where it never does."""
        end = time.perf_counter() + seconds
        while not condition():
            self.app.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)  # a timer wakes it
            if time.perf_counter() > end:
                raise SystemExit("The window did not do in time what was asked of it.")

    def scroll(self) -> list[float]:
        """Milliseconds of each frame, from the first chat to the last and back; pages are fetched on the way."""
        view, frames = self.window.side_bar.list, []
        bar = view.verticalScrollBar()
        for step in (WHEEL, -4 * WHEEL):
            place = None
            while place != bar.value() and len(frames) < 20_000:
                place = bar.value()
                start = time.perf_counter()
                bar.setValue(place + step)
                self.app.processEvents()
                frames.append((time.perf_counter() - start) * 1000)
        return frames

    def search(self, words: str) -> tuple[float, int]:
        """Milliseconds from the question to the answer on screen, and how many chats were found."""
        shelf, found = self.window.shelf, self.window.side_bar.found
        self.window.side_bar.search.setText("")
        answered: list[bool] = []
        shown = self.window.side_bar.show_hits

        def show(hits: list) -> None:  # type: ignore[type-arg]
            shown(hits)
            answered.append(True)

        self.window.side_bar.show_hits = show  # type: ignore[method-assign]
        shelf._words = words
        start = time.perf_counter()
        shelf._search()
        self.until(lambda: bool(answered))
        self.app.processEvents()
        took = (time.perf_counter() - start) * 1000
        self.window.side_bar.show_hits = shown  # type: ignore[method-assign]
        return took, len(found.hits())

    def open_chat(self, chat: int) -> float:
        """Milliseconds until the chat is painted."""
        start = time.perf_counter()
        self.window.chat.open_chat(chat)
        self.app.processEvents()
        self.app.processEvents()
        return (time.perf_counter() - start) * 1000

    def close(self) -> None:
        self.window.close()
        self.window.deleteLater()
        self.app.processEvents()


def measure(folder: Path, chats: int) -> list[Figure]:
    """Make and take all figures."""
    start = time.perf_counter()
    long = make(folder, chats)
    made = time.perf_counter() - start
    size = (folder / "history.db").stat().st_size / 2**20
    bench = Bench(folder)
    window = bench.window
    frames = sorted(bench.scroll())
    rows = len(window.side_bar.model.titles())
    words = vocabulary()
    queries = [query.format(*words) for query in QUERIES]
    times = [bench.search(query) for _ in range(3) for query in queries]
    worst = max(range(len(times)), key=lambda n: times[n][0])
    counts = ", ".join(f"{words!r} {times[n][1]}" for n, words in enumerate(queries))
    opening = []
    for _ in range(5):
        opening.append(bench.open_chat(long))
        window.new_chat()
        window.chat.chats.chats.clear()  # read again
    earlier = earlier_ms(bench, long)
    bench.close()
    late = sum(ms > FRAME_MS for ms in frames)
    return [
        Figure("window until its list can be read", bench.opened_ms, "ms",
               note=f"{size:.0f} MiB, made in {made:.0f} s"),
        Figure("a frame of scrolling the list, 99 of 100", frames[int(len(frames) * 0.99)], "ms", FRAME_MS,
               note=f"{rows} chats, {len(frames)} frames, median {statistics.median(frames):.2f}, worst "
                    f"{frames[-1]:.1f}, {late} above {FRAME_MS}"),
        Figure("search, worst of all", times[worst][0], "ms", SEARCH_MS,
               note=f"median {statistics.median(ms for ms, _ in times):.1f}; worst for "
                    f"{queries[worst % len(queries)]!r}; found: {counts}"),
        Figure(f"opening a chat of {LONG} messages, worst of five", max(opening), "ms", OPEN_MS,
               note=f"median {statistics.median(opening):.0f}"),
        Figure("showing some more of it above, worst of ten", max(earlier), "ms",
               note=f"median {statistics.median(earlier):.0f}"),
    ]  # fmt: skip


def earlier_ms(bench: Bench, chat: int) -> list[float]:
    """Scrolling up in the long chat: milliseconds of each piece that is built above."""
    bench.open_chat(chat)
    took = []
    for _ in range(10):
        start = time.perf_counter()
        bench.window.chat.shown.show_earlier()
        bench.app.processEvents()
        took.append((time.perf_counter() - start) * 1000)
    return took


def main() -> None:
    """Measure and report."""
    chats = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        report(measure(Path(sys.argv[2]) if len(sys.argv) > 2 else Path(folder), chats))


if __name__ == "__main__":
    main()
