"""Stop strings: found however the text is cut, never shown, nothing else held back for good."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from builders import byte_tokenizer
from engine.text.reply import ReplyText
from engine.text.stop import StopStrings
from engine.text.tokenizer import Tokenizer


def run(strings: tuple[str, ...], pieces: list[str]) -> tuple[list[str], bool]:
    stop = StopStrings(strings)
    shown = []
    for piece in pieces:
        text, stopped = stop.push(piece)
        shown.append(text)
        if stopped:
            assert stop.push("more") == ("", True)
            assert stop.flush() == ""
            return shown, True
    return [*shown, stop.flush()], False


def by_characters(strings: tuple[str, ...], text: str) -> tuple[str, bool]:
    """The definition: read character by character until some stop string is complete; the longest there wins."""
    for end in range(1, len(text) + 1):
        ended = [s for s in strings if s and text[:end].endswith(s)]
        if ended:
            return text[: end - max(map(len, ended))], True
    return text, False


@pytest.mark.parametrize(
    ("strings", "pieces", "shown", "stopped"),
    [
        (("STOP",), ["abSTOPcd"], ["ab"], True),
        (("STOP",), ["ab S", "TO", "P and on"], ["ab ", "", ""], True),
        (("STOP",), ["ab S", "TO", "x"], ["ab ", "", "STOx", ""], False),
        (("STOP",), ["ab STO"], ["ab ", "STO"], False),
        (("aab",), ["aa", "ab", "x"], ["", "a"], True),
        (("\nUser:",), ["Hi", "\n", "User", ": x"], ["Hi", "", "", ""], True),
        (("", ""), ["abc", "d"], ["abc", "d", ""], False),
        ((), ["a", "", "b"], ["a", "", "b", ""], False),
        (("b", "abc"), ["abc"], ["a"], True),
        (("😀!",), ["x😀", "?"], ["x", "😀?", ""], False),
        (("ab", "ab"), ["xab"], ["x"], True),
    ],
)
def test_stop_strings(strings: tuple[str, ...], pieces: list[str], shown: list[str], stopped: bool) -> None:
    assert run(strings, pieces) == (shown, stopped)


def test_the_cut_into_pieces_makes_no_difference() -> None:
    source = random.Random(1)
    found = 0
    for _ in range(3000):
        strings = tuple("".join(source.choices("ab\n", k=source.randint(0, 4))) for _ in range(source.randint(0, 3)))
        text = "".join(source.choices("abc\n", k=source.randint(0, 25)))
        pieces, at = [], 0
        while at < len(text):
            step = source.randint(1, 6)
            pieces.append(text[at : at + step])
            at += step
        shown, stopped = run(strings, pieces)
        assert ("".join(shown), stopped) == by_characters(strings, text)
        assert not any(s and s in "".join(shown) for s in strings)
        found += stopped
    assert 500 < found < 2900


def test_text_is_held_back_no_longer_than_needed() -> None:
    stop = StopStrings(["END"])
    for i in range(1000):
        text, stopped = stop.push(f"E{i}")
        assert (text.lstrip("E"), stopped) == (f"{i}" if i else "0", False)
    assert stop.push("EN")[0] == ""
    assert stop.flush() == "EN"


def test_a_reply_stops_inside_a_block_at_a_string_over_several_tokens(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_folder(byte_tokenizer(tmp_path))
    reply = ReplyText(tokenizer, ["on the mat", "never"])
    ids = tokenizer.encode("the cat sat on the mat and 😀", allow_control=False)
    shown = []
    for i in ids:
        text, stopped = reply.push(i)
        shown.append(text)
        if stopped:
            break
    assert stopped and "".join(shown) == "the cat sat "
    assert tokenizer.decode(ids[: len(shown)]) == "the cat sat on the mat"
    assert reply.flush() == ""


def test_the_tail_holds_back_text_and_half_characters(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_folder(byte_tokenizer(tmp_path))
    reply = ReplyText(tokenizer, ["!x"])
    ids = tokenizer.encode("hi!😀", allow_control=False)
    shown = "".join(reply.push(i)[0] for i in ids[:-1])
    assert (shown, reply.flush()) == ("hi", "!\ufffd")


def test_without_a_tokenizer_there_is_no_text() -> None:
    reply = ReplyText(None, ["x"])
    assert reply.push(5) == ("", False)
    assert reply.ghosts((1, 2)) == ("", "")
    assert reply.flush() == ""
