"""What is found by which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.history import index
from app.history.operations import AddMessage
from app.history.rows import USER, Ids, one_line, storable
from app.history.search import search
from history_rig import shelf

TEXTS = {
    "kernel": "The Roofline of a kernel says: bytes first.",
    "chinese": "自推测解码会改变模型写出的内容吗？",
    "japanese": "カーネルの性能",
    "accents": "Die Größe des Cafés in Zürich",
    "code": 'print("Hello, world")  # kv_cache',
}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("kernel", ["kernel"]),
        ("KERN bytes", ["kernel"]),
        ("kernel chinese", []),
        ("推测", ["chinese"]),
        ("模", ["chinese"]),
        ("测推", []),
        ("性能", ["japanese"]),
        ("zurich", ["accents"]),
        ("größe", ["accents"]),
        ('"hello', ["code"]),
        ("kv_cache", ["code"]),
        ("k", []),
        ("-> * NEAR( OR", []),
        ("", []),
        ("\0\ud800", []),
    ],
)
def test_words_are_found(tmp_path: Path, query: str, found: list[str]) -> None:
    with shelf(tmp_path) as store, store.reading() as reader:
        names = {}
        for name, text in TEXTS.items():
            names[store.chat("…")] = name
            store.say(next(reversed(names)), text)
        assert [names[hit.chat.id] for hit in search(reader, storable(query))] == found


def test_titles_come_first_and_a_chat_comes_once(tmp_path: Path) -> None:
    with shelf(tmp_path) as store, store.reading() as reader:
        titled = store.chat("About kernels", at=1.0)
        store.say(titled, "kernel kernel")
        said = store.chat("Other", at=2.0)
        for _ in range(3):
            last = store.say(said, "One kernel after another")
        hits = search(reader, "kernel")
        assert [(hit.chat.id, hit.message) for hit in hits] == [(titled, None), (said, last)]
        assert (hits[1].before, hits[1].match, hits[1].after) == ("One ", "kernel", " after another")
        assert [hit.chat.id for hit in search(reader, "ernels")] == [titled], "titles also by the middle of a word"


@pytest.mark.parametrize("indexed", [True, False])
def test_a_long_chat_full_of_the_word_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indexed: bool
) -> None:
    monkeypatch.setattr(index, "has_fts5", lambda db: indexed)
    with shelf(tmp_path) as store, store.reading() as reader:
        others = [store.chat(f"Chat {number}") for number in range(5)]
        for chat in others:
            store.say(chat, "A kernel")
        long = store.chat("Long")
        numbers = [store.ids.next() for _ in range(1000)]
        store.do(*(AddMessage(number, long, None, USER, "kernel again", 0.0) for number in numbers))
        assert [hit.chat.id for hit in search(reader, "kernel")] == [long, *reversed(others)]
        assert search(reader, "kernel")[0].message == numbers[-1]


def test_what_is_shown_of_a_message_is_short_and_harmless(tmp_path: Path) -> None:
    with shelf(tmp_path) as store, store.reading() as reader:
        store.say(store.chat("…"), "a" * 20_000 + " \u202eevil\u2066 needle\n\n\t\x07<img src=x> " + "b" * 20_000)
        (hit,) = search(reader, "needle")
        assert hit.match == "needle" and hit.before.startswith("…") and hit.before.endswith("evil ")
        shown = hit.before + hit.match + hit.after
        assert len(shown) < 160 and not set(shown) & set("\u202e\u2066\n\t\x07")


@pytest.mark.parametrize(
    ("text", "line"),
    [("a\nb\tc", "a b c"), ("\u202eabc\u2069", "abc"), ("x" * 50, "x" * 39 + "…"), ("a\x00\x1b[31mb", "a\ufffd[31mb")],
)
def test_one_line(text: str, line: str) -> None:
    assert one_line(text, 40) == line


def test_numbers_grow_even_when_the_clock_does_not() -> None:
    times = iter([1_800_000_000.0, 1_800_000_000.0, 1_700_000_001.0, 1_800_000_001.0])
    ids = Ids(lambda: next(times))
    numbers = [ids.next() for _ in range(3)]
    assert numbers == [100_000_000_000_000, 100_000_000_000_001, 100_000_000_000_002]
    ids.stay_above(200_000_000_000_000)
    assert ids.next() == 200_000_000_000_001
