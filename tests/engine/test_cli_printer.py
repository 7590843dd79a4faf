"""What a terminal shows while a reply is made: styles by state, ghosts that leave no trace."""

from __future__ import annotations

import io
import os
import re

import pytest

from engine.cli.printer import ReplyPrinter
from engine.cli.terminal import STYLES, cell_width, clipped, colour_wanted, visible
from engine.records import CycleEvent, Finished, StopReason, TokenState
from scripted_engine import PARIS, PLAIN, cycle


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def screen(written: str) -> str:
    """What stays on a terminal's screen: saved positions restored and lines cleared, styles left out."""
    shown, saved = "", 0
    for part in re.split(r"(\x1b7|\x1b8|\x1b\[K|\x1b\[[0-9;:]*m)", written):
        if part == "\x1b7":
            saved = len(shown)
        elif part == "\x1b8":
            shown = shown[:saved]
        elif not part.startswith("\x1b"):
            shown += part
    return shown


def printed(cycles: tuple[CycleEvent, ...], colour: bool = True, tail: str = "") -> str:
    out = Terminal()
    printer = ReplyPrinter(out, colour)
    for event in cycles:
        printer.show(event)
    printer.show(Finished(StopReason.END_TOKEN, tail, 1, 0, 6, 0.0, 0.0, 0))
    printer.end()
    return out.getvalue()


def test_each_state_has_its_own_style() -> None:
    written = printed(PARIS)
    assert f"{STYLES[TokenState.ACCEPTED]}The\x1b[0m" in written
    assert f"{STYLES[TokenState.CORRECTION]} is\x1b[0m" in written
    assert f"{STYLES[TokenState.BONUS]}.\x1b[0m" in written
    assert len(set(STYLES.values())) == len(STYLES)


def test_styles_differ_by_more_than_colour() -> None:
    marks = [re.sub(r"38;5;\d+;?", "", style) for style in STYLES.values()]
    assert len(set(marks)) == len(marks)


def test_plain_tokens_have_no_style() -> None:
    assert printed(PLAIN) == "Hi!\n"


def test_rejected_text_is_shown_and_leaves_no_trace() -> None:
    written = printed(PARIS)
    assert f"{STYLES[TokenState.REJECTED]} Lyon now" in written
    assert screen(written) == "The capital is Paris.\n"


def test_a_ghost_of_the_last_cycle_goes_too() -> None:
    assert screen(printed(PARIS[:1])) == "The capital is\n"


def test_no_colour_means_no_escapes_and_no_ghosts() -> None:
    assert printed(PARIS, colour=False) == "The capital is Paris.\n"


def test_a_ghost_stays_on_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((20, 5)))
    written = printed((cycle(0, ("twelve chars",), ("\nsecond line of it",), TokenState.CORRECTION),))
    ghost = written.split(STYLES[TokenState.REJECTED])[1].split("\x1b")[0]
    assert ghost == "↵second"
    assert 12 + cell_width(ghost) == 19


def test_a_ghost_counts_from_the_last_line_break(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((20, 5)))
    written = printed(
        (cycle(0, ("eighteen characters\n", "ab"), ("xxxxxxxxxxxxxxxxxxxxxxxx",), TokenState.CORRECTION),)
    )
    assert written.count("x") == 17


def test_tail_and_last_line_break() -> None:
    assert screen(printed(PARIS, tail=" So")) == "The capital is Paris. So\n"
    assert printed((cycle(0, ("done\n",), (), TokenState.PLAIN),)) == "done\n"


def test_a_model_cannot_steer_the_terminal() -> None:
    written = printed((cycle(0, ("\x1b[2Jgone\x07\t.",), (), TokenState.PLAIN),))
    assert written == "\N{REPLACEMENT CHARACTER}[2Jgone\N{REPLACEMENT CHARACTER}\t.\n"
    assert visible("a\nb\x9b") == "a\nb\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("😀", 2), ("", 0)])
def test_cell_width(text: str, width: int) -> None:
    assert cell_width(text) == width


def test_clipped_never_cuts_a_wide_character_in_half() -> None:
    assert clipped("日本語", 5) == "日本"
    assert clipped("abc", 0) == ""


@pytest.mark.parametrize(
    ("environment", "refused", "expected"),
    [
        ({}, False, True),
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_colour_on_a_terminal(
    environment: dict[str, str], refused: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert colour_wanted(Terminal(), refused) is expected


def test_colour_elsewhere_only_when_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert not colour_wanted(io.StringIO())
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert colour_wanted(io.StringIO())
