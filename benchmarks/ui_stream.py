"""What a streamed token costs the window: 20,000 tokens into one reply, offscreen, ten tokens a frame.

Run: python benchmarks/ui_stream.py [tokens]. Prints milliseconds a token for each fifth of the reply, appending alone
and with layout, scrolling and painting, and the longest a frame took. Processor time, so that a busy machine
does not count.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
_ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

from PySide6.QtWidgets import QApplication  # noqa: E402

from app import theme  # noqa: E402
from app.ui.conversation_view import ConversationView  # noqa: E402
from reply_builders import long_reply  # noqa: E402

TOKENS_A_FRAME = 10


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
    for paragraph, label in ((60, "paragraphs of 60 tokens"), (10**9, "one paragraph")):
        for painting in (False, True):
            times, longest = stream(tokens, paragraph, painting)
            what = "append, layout, scroll, paint" if painting else "append only"
            figures = "  ".join(f"{ms:.3f}" for ms in times)
            print(f"{label}, {what}: ms/token by fifths {figures}; longest frame {longest:.1f} ms", flush=True)


if __name__ == "__main__":
    main()
