"""What a reply in Markdown costs the window as it streams: python benchmarks/ui_markdown.py [TOKENS [RATE]].

2,000 tokens at 300 a second, in the conversation, with the event loop running as it does in the program: headings,
lists, quotations, tables and code, tokens of four characters, every third cycle with a rejected guess. Two figures:
appending (formatting and layout included) in processor time a token, and the longest time that the event loop was not
seen, from a timer of 2 ms.
"""

from __future__ import annotations

import os
import statistics
import sys
import time

from figures import ROOT, Figure, report

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.append(str(ROOT / "tests"))

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from app import theme
from app.ui.conversation_view import ConversationView
from engine.records import CycleEvent
from reply_builders import cycle, finished

GOAL_TOKEN_MS, GOAL_GAP_MS = 0.5, 50.0
FRAME_MS, BEAT_MS = 33, 2
SECTION = """## Section of the **reply**

A paragraph with *emphasis*, `inline code`, [a link](https://example.org/page) and some more words, so that it wraps
over the line as paragraphs do, and ends with $x_1 + y_2$.

1. **First**: an item that is long enough to need a second line in a column of this width, with `code`.
2. Second
   - nested
   - and *again*

> A quotation, 也有中文。

| name | speed | note |
|:-----|------:|------|
| plain | 69 | one full pass a token |
| draft | **155** | `n = 5` |

```python
def verify(draft: list[int]) -> int:
    accepted = 0  # none so far
    for place, token in enumerate(draft):
        accepted += token == full_model(place)
    return accepted
```

"""


def cycles(tokens: int) -> list[CycleEvent]:
    """So many tokens of text, in cycles of five."""
    text = SECTION * (tokens * 4 // len(SECTION) + 1)
    pieces = [text[i * 4 : i * 4 + 4] for i in range(tokens)]
    groups = [pieces[i : i + 5] for i in range(0, tokens, 5)]
    return [cycle(i, group[:-1], group[-1], [" guess"] if i % 3 == 0 else []) for i, group in enumerate(groups)]


class Stream:
    """Shows a reply at its rate, and watches the event loop meanwhile."""

    def __init__(self, tokens: int, rate: float) -> None:
        self.events, self.rate = cycles(tokens), rate
        self.shown, self.token_ms, self.gap_ms = 0, [0.0][:0], 0.0
        self.view = ConversationView()
        self.view.resize(1000, 800)
        self.view.show()
        self.view.add_user("Explain.")
        self.reply = self.view.begin_reply()
        self.loop = QEventLoop()
        self.began = self.seen = time.perf_counter()

    def run(self) -> None:
        """Show all of it."""
        feed, beat = QTimer(), QTimer()
        feed.timeout.connect(self.feed)
        beat.timeout.connect(self.beat)
        QApplication.processEvents()
        self.began = self.seen = time.perf_counter()
        feed.start(FRAME_MS)
        beat.start(BEAT_MS)
        self.loop.exec()
        feed.stop()
        beat.stop()
        self.view.close()

    def feed(self) -> None:
        """What has come since the last frame."""
        due = min(int((time.perf_counter() - self.began) * self.rate / 5), len(self.events))
        if due > self.shown:
            start = time.thread_time()
            self.reply.append_many(list(self.events[self.shown : due]))
            self.token_ms.append((time.thread_time() - start) * 1000 / (5 * (due - self.shown)))
            self.shown = due
        if self.shown == len(self.events):
            self.reply.append(finished())
            self.loop.quit()

    def beat(self) -> None:
        """The event loop is seen."""
        now = time.perf_counter()
        self.gap_ms = max(self.gap_ms, (now - self.seen) * 1000)
        self.seen = now


def main() -> None:
    """Stream once to warm up and once to measure."""
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    rate = float(sys.argv[2]) if len(sys.argv) > 2 else 300.0
    app = QApplication([])
    theme.apply(app, "light")
    Stream(200, rate).run()
    stream = Stream(tokens, rate)
    stream.run()
    note = f"{tokens} tokens of Markdown at {rate:.0f} tok/s; worst frame {max(stream.token_ms):.2f} ms a token"
    report(
        [
            Figure("a streamed token of Markdown", statistics.median(stream.token_ms), "ms", GOAL_TOKEN_MS, note=note),
            Figure("longest gap of the event loop", stream.gap_ms, "ms", GOAL_GAP_MS),
        ]
    )


if __name__ == "__main__":
    main()
