"""What a streamed token costs the window: 20,000 tokens into one reply, offscreen, ten tokens a frame.

Run: python benchmarks/ui_stream.py [tokens]. Prints milliseconds a token for each fifth of the reply, appending alone
and with layout, scrolling and painting, and the longest a frame took. Processor time, so that a busy machine
does not count.
"""

from __future__ import annotations

import os
import sys
import time

from figures import ROOT, Figure, report

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.append(str(ROOT / "tests"))

from PySide6.QtWidgets import QApplication

from app import theme
from app.ui.conversation_view import ConversationView
from reply_builders import long_reply

TOKENS_A_FRAME = 10
GOAL_MS = 0.3


def stream(tokens: int, paragraph: int, with_painting: bool) -> tuple[list[float], float]:
    """Milliseconds a token for each fifth of the reply, and the longest frame in milliseconds."""
    events = long_reply(tokens, paragraph)
    view = ConversationView()
    view.resize(1000, 800)
    view.show()
    view.add_user("Count.")
    reply = view.begin_reply()
    QApplication.processEvents()
    per_frame = TOKENS_A_FRAME // 5
    fifth = len(events) // 5
    times, longest = [], 0.0
    for part in range(5):
        spent = 0.0
        for i in range(part * fifth, (part + 1) * fifth, per_frame):
            start = time.process_time()
            reply.append_many(list(events[i : i + per_frame]))
            if with_painting:
                QApplication.processEvents()
            seconds = time.process_time() - start
            QApplication.processEvents()
            spent += seconds
            longest = max(longest, seconds)
        times.append(spent * 1000 / (fifth * 5))
    view.close()
    view.deleteLater()
    QApplication.processEvents()
    return times, longest * 1000


def main() -> None:
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    app = QApplication([])
    theme.apply(app, "light")
    figures = []
    for paragraph, label in ((60, "paragraphs of 60 tokens"), (10**9, "one paragraph")):
        for painting in (False, True):
            times, longest = stream(tokens, paragraph, painting)
            what = "append, layout, scroll, paint" if painting else "append only"
            fifths = "  ".join(f"{ms:.3f}" for ms in times)
            how = f"worst fifth of {tokens} tokens; by fifths {fifths}; longest frame {longest:.1f} ms; CPU time"
            figures.append(Figure(f"a streamed token: {what}, {label}", max(times), "ms", at_most=GOAL_MS, note=how))
    report(figures)


if __name__ == "__main__":
    main()
