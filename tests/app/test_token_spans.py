"""The bookkeeping of spans, without a window."""

from __future__ import annotations

import random

from app.widgets.token_spans import SpanKind, TokenSpans, utf16_length, utf16_slice


def make(*parts: tuple[SpanKind, str]) -> TokenSpans:
    spans = TokenSpans()
    for kind, text in parts:
        spans.append(kind, text, utf16_length(text))
    return spans


def test_find_and_source() -> None:
    parts = [(SpanKind.PLAIN, "One"), (SpanKind.GHOST, " xx"), (SpanKind.CORRECTION, " two"), (SpanKind.BONUS, "😀")]
    spans = make(*parts)
    assert [spans.find(p) for p in (0, 2, 3, 6, 9, 10, 11, 99)] == [0, 0, 1, 2, 2, 3, 3, 3]
    assert spans.source() == "One two😀"
    assert spans.source_between(1, 8) == "ne t"
    assert spans.source_between(3, 6) == ""
    assert spans.source_between(9, 12) == "o😀"


def test_empty_pieces_leave_the_position_to_the_token_that_completes_it() -> None:
    spans = make((SpanKind.ACCEPTED, ""), (SpanKind.CORRECTION, "好"))
    assert spans.kinds[spans.find(0)] is SpanKind.CORRECTION
    assert spans.source() == "好"


def test_half_a_character_is_never_cut_out() -> None:
    assert utf16_slice("a😀b", 0, 2) == "a"
    assert utf16_slice("a😀b", 1, 3) == "😀"


def test_resize_moves_what_follows_and_breaks() -> None:
    spans = make((SpanKind.PLAIN, "aaaa"), (SpanKind.GHOST, " ghost"), (SpanKind.PLAIN, " bbbb cccc"))
    assert spans.split_line(15)
    spans.resize({1: 1})
    assert spans.starts == [0, 4, 5]
    assert spans.breaks == [10]
    assert spans.end == 16
    assert spans.source_between(0, spans.end) == "aaaa bbbb cccc"
    assert spans.source_between(9, 12) == "b "


def test_split_belongs_to_the_token_before_and_never_to_a_ghost() -> None:
    spans = make((SpanKind.PLAIN, "aa "), (SpanKind.PLAIN, "bb"))
    assert spans.split_line(3)
    assert spans.starts == [0, 4]
    assert spans.source_between(0, 4) == "aa "
    assert spans.source_between(2, 5) == " b"
    ghost = make((SpanKind.GHOST, "aa "), (SpanKind.PLAIN, "bb"))
    assert not ghost.split_line(3)
    assert not ghost.split_line(0)
    assert ghost.end == 5


def test_join_lines_restores_positions() -> None:
    spans = make((SpanKind.PLAIN, "aa bb "), (SpanKind.PLAIN, "cc dd"))
    before = list(spans.starts)
    spans.split_line(3)
    spans.split_line(10)
    spans.join_lines()
    assert spans.starts == before
    assert spans.end == 11


def test_random_edits_keep_tiles_and_source() -> None:
    rng = random.Random(5)
    spans = TokenSpans()
    source = ""
    for _ in range(400):
        text = rng.choice([" word", "好的", "😀", "\n", "", " x"])
        if rng.random() < 0.2:
            index = spans.append(SpanKind.GHOST, text, 0)
            spans.resize({index: rng.randint(1, 9)})
        else:
            spans.append(SpanKind.PLAIN, text, utf16_length(text))
            source += text
    ghosts = [i for i, kind in enumerate(spans.kinds) if kind is SpanKind.GHOST]
    spans.resize({i: 1 for i in ghosts})
    assert all(spans.length(i) == 1 for i in ghosts)
    assert all(spans.length(i) == utf16_length(spans.texts[i]) for i in range(len(spans)) if i not in ghosts)
    assert spans.source() == source == spans.source_between(0, spans.end)
