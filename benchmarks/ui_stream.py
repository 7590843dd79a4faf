"""What a streamed token costs the window: python benchmarks/ui_stream.py [TOKENS], 20,000 into one reply.

Two figures of each kind of text. A token: appending it and laying it out, by fifths of the reply, so that growth would
show. A frame: ten tokens with layout, scrolling and painting; the screen is painted once a frame, however many tokens
came. Processor time, so that a busy machine counts less.
"""

from __future__ import annotations

import os
import statistics
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
GOAL_TOKEN_MS, GOAL_FRAME_MS = 0.3, 8.0


def stream(tokens: int, paragraph: int, with_painting: bool) -> list[list[float]]:
    """Milliseconds of each frame, for each fifth of the reply; without painting, of its appending alone."""
    events = long_reply(tokens, paragraph)
    view = ConversationView()
    view.resize(1000, 800)
    view.show()
    view.add_user("Count.")
    reply = view.begin_reply()
    QApplication.processEvents()
    per_frame = TOKENS_A_FRAME // 5
    fifth = len(events) // 5
    frames: list[list[float]] = []
    for part in range(5):
        frames.append([])
        for i in range(part * fifth, (part + 1) * fifth, per_frame):
            start = time.process_time()
            reply.append_many(list(events[i : i + per_frame]))
            if with_painting:
                QApplication.processEvents()
            frames[-1].append((time.process_time() - start) * 1000)
            QApplication.processEvents()
    view.close()
    view.deleteLater()
    QApplication.processEvents()
    return frames


def token_figure(tokens: int, paragraph: int, label: str) -> Figure:
    """Appending and layout, in milliseconds a token."""
    fifths = [statistics.mean(times) / TOKENS_A_FRAME for times in stream(tokens, paragraph, False)]
    how = f"worst fifth of {tokens} tokens; by fifths {' '.join(f'{ms:.3f}' for ms in fifths)}"
    return Figure(f"a streamed token, {label}", max(fifths), "ms", at_most=GOAL_TOKEN_MS, note=how)


def frame_figure(tokens: int, paragraph: int, label: str) -> Figure:
    """Everything in a frame of ten tokens, in milliseconds a frame."""
    fifths = stream(tokens, paragraph, True)
    medians = [statistics.median(times) for times in fifths]
    how = (
        f"{TOKENS_A_FRAME} tokens, painted; worst fifth's median; by fifths {' '.join(f'{ms:.1f}' for ms in medians)}; "
        f"longest {max(max(times) for times in fifths):.0f} ms"
    )
    return Figure(f"a frame of the stream, {label}", max(medians), "ms", at_most=GOAL_FRAME_MS, note=how)


def main() -> None:
    """Stream both kinds of text both ways and print the figures."""
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    app = QApplication([])
    theme.apply(app, "light")
    figures = []
    for paragraph, label in ((60, "paragraphs of 60 tokens"), (10**9, "one paragraph")):
        figures += [token_figure(tokens, paragraph, label), frame_figure(tokens, paragraph, label)]
    report(figures)


if __name__ == "__main__":
    main()
