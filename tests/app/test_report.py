"""Reports: the page holds what happened and nothing that a text can break; picture and replay lie beside it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fake_engine import paris
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from window_bench import Bench, BenchMaker

from app import theme
from app.recorded import DEMO
from app.report.files import write_report
from app.report.page import page
from app.ui.reply_view import ReplyView
from engine.comparison import Comparison
from engine.positions import acceptance_by_place
from engine.recording import Recording, event_times, read_recording
from engine.records import Event, ModelInfo, PrefillProgress, StopReason
from engine.settings import Sampling, Speculation
from reply_builders import cycle, finished, long_reply, sibling_cycle

NOW = datetime(2026, 12, 1, 3, 40, tzinfo=timezone.utc)
VOID = {"meta", "rect", "circle", "path", "line", "polygon", "polyline", "br"}
INFO = ModelInfo("Tiny", "tiny", "llama", 2, 8, 99, 64, "F16", 10, 5, "CPU", "kernels", "ChatML")


def recording(*events: Event, prompt: str = "Why?", info: ModelInfo = INFO) -> Recording:
    return Recording(prompt, info, Sampling(), Speculation(), 99, events, event_times(events))


def made(*events: Event, prompt: str = "Why?", info: ModelInfo = INFO) -> str:
    return page(recording(*events, prompt=prompt, info=info), NOW)


class Reader(HTMLParser):
    """Reads a page as a browser does; fails on elements that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[tuple[str, str]] = []
        self.runs: list[tuple[str, str]] = []  # class of the innermost element, text
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.elements.append((tag, values))
        if tag not in VOID:
            self.open.append((tag, values.get("class", "")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.runs.append((self.open[-1][1] if self.open else "", data))

    @property
    def said(self) -> str:
        """Text as it reads, without ghosts."""
        return "".join(text for kind, text in self.runs if kind != "rejected")

    def of(self, kind: str) -> list[str]:
        return [text for found, text in self.runs if found == kind]


def test_the_text_is_there_in_its_five_forms() -> None:
    read = Reader(
        made(
            cycle(0, [" one", " two"], " three"),
            cycle(1, [" four"], " five", [" wrong", " never"]),
            cycle(2, [], " six"),
            finished(tail=" end"),
        )
    )
    assert " one two three four five six end" in read.said
    assert "one two" in read.of("accepted") and "four" in read.of("accepted")
    assert "three" in read.of("bonus") and "five" in read.of("correction") and "six" in read.of("plain")
    assert "wrong" in read.of("rejected") and "never" not in "".join(read.of("rejected"))
    deleted = [attributes for tag, attributes in read.elements if tag == "del"]
    assert [attributes["title"] for attributes in deleted] == ["cycle 2"]


def test_counts_and_figures_agree_with_the_records() -> None:
    demo = read_recording(DEMO)
    text = page(demo, NOW)
    read, sums = Reader(text), demo.statistics
    counts = [int(text) for (tag, text) in zip(*_bold(text), strict=True) if tag]
    assert counts == [sums.kept, sums.tested - sums.accepted, sums.corrections, sums.bonuses, sums.plain]
    for figure in (
        f"{sums.tokens_per_second:.1f} tok/s",
        f"{sums.speed_up:.2f}×",
        f"{sums.drafted:,} / {sums.tested:,}",
    ):
        assert figure in read.said
    bars = [attributes for tag, attributes in read.elements if tag == "rect" and attributes["class"] == "verify"]
    assert len(bars) == sums.cycles
    dots = [a for tag, a in read.elements if tag == "circle" and a["class"] == "accepteddot" and a["r"] != "3"]
    assert len(dots) == sum(event.record.agreed for event in demo.cycles)
    places = acceptance_by_place(event.record for event in demo.cycles)
    points = [attributes for tag, attributes in read.elements if tag == "circle" and attributes["r"] == "3"]
    assert len(points) == len(places) > 3
    assert "CPU, 2 cores" in read.said and "SmolLM2 135M Instruct" in read.said and "16,384" in read.said
    assert "2026-12-01 03:40+00:00" in read.said


def _bold(text: str) -> tuple[list[str], list[str]]:
    found = re.findall(r"<(b)>(.*?)</b>", text)
    return [tag for tag, _ in found], [inside for _, inside in found]


def test_a_second_choice_does_not_count_as_the_chains() -> None:
    read = Reader(made(sibling_cycle(0, [" one"], " two", " three", [" wrong", " more"]), finished()))
    kinds = [a["class"] for tag, a in read.elements if tag in ("circle", "path", "rect") and a.get("r") != "3"]
    assert kinds[:4] == ["accepteddot", "wrong", "untesteddot", "bonusdot"]
    assert " one two three" in read.said and read.of("rejected")[0] == "wrong" and "two" in read.of("accepted")


HOSTILE = [
    "</style></title><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "<!-- & --> &lt; &#60; ]]> <![CDATA[",
    "javascript:alert(1) https://example.com/x.png",
    "\u202egnp.exe\u2066 \u200f",
    "\x00\x08\x1b[31m\x7f\x85\ufffe",
    "half \ud83d a character \udc00",
    "{name} %s %1 {0} \\",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_becomes_markup(text: str) -> None:
    info = ModelInfo(text, text, text, 2, 8, 99, 64, text, 10, 5, text, text, text)
    events = (
        cycle(0, [text, text], text),
        cycle(1, [" a"], text, [text, text]),
        finished(StopReason.FAILED, tail=text, message=text),
    )
    whole = made(*events, prompt=text, info=info)
    plain = Reader(made(cycle(0, ["a", "b"], "c"), cycle(1, [" a"], "d", ["e", "f"]), finished(StopReason.FAILED)))
    read = Reader(whole)
    assert [tag for tag, _ in read.elements] == [tag for tag, _ in plain.elements]
    assert not any(name.startswith("on") for _, attributes in read.elements for name in attributes)
    whole.encode()  # a file can hold it
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", whole)
    shown = text.translate({c: "\ufffd" for c in [*range(9), *range(11, 32), *range(127, 160), *range(0xD800, 0xE000)]})
    assert shown.strip() in read.said


@pytest.mark.parametrize("text", [*HOSTILE, "plain"])
def test_the_page_asks_for_nothing_from_outside(text: str) -> None:
    read = Reader(made(cycle(0, [text], text), finished(), prompt=text))
    tags = {tag for tag, _ in read.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "a", "image", "use"}
    assert not any(name in ("src", "href", "xlink:href") for _, attributes in read.elements for name in attributes)
    styles = "".join(text for _, text in read.runs if "--canvas" in text)
    assert "url(" not in styles and "@import" not in styles
    policy = next(a["content"] for tag, a in read.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")


def test_both_themes_are_in_the_page() -> None:
    text = made(cycle(0, [" a"], " b"), finished())
    light, dark = text.index(theme.LIGHT.accepted_wash), text.index(theme.DARK.accepted_wash)
    assert light < text.index("@media (prefers-color-scheme: dark)") < dark


def test_what_was_not_measured_is_not_available_with_its_reason() -> None:
    read = Reader(made(PrefillProgress(1, 40, 0), finished(StopReason.STOPPED)))
    reasons = [attributes["title"] for tag, attributes in read.elements if tag == "abbr"]
    assert "Nothing was decoded." in reasons and "Nothing was drafted." in reasons
    assert "No plain step was measured in this reply." in reasons
    assert "This reply was not compared with plain decoding." in reasons
    assert "svg" not in {tag for tag, _ in read.elements} and "0.0 tok/s" not in read.said


def test_a_comparison_is_reported() -> None:
    events = (cycle(0, [" a"], " b"), finished())
    compared = Recording(
        "Why?", INFO, Sampling(), Speculation(), 9, events, event_times(events), Comparison(2, None, 2, 2, 3.0, 1.5)
    )
    assert "compared with plain: identical, 2.0× as fast" in Reader(page(compared, NOW)).said


def test_the_picture_is_the_reply_as_drawn(qapp: QApplication, qtbot: QtBot, tmp_path: Path) -> None:
    for name, looks in (("light", theme.LIGHT), ("dark", theme.DARK)):
        theme.apply(qapp, name)
        write_report(tmp_path / f"{name}.html", read_recording(DEMO), keep_ghosts=True, made=NOW)
        image = QImage(str(tmp_path / f"{name}.png"))
        assert image.width() == 1536 and 600 < image.height() < 1200
        colours = {image.pixelColor(x, y).name() for x in range(0, 1536, 3) for y in range(0, image.height(), 5)}
        assert {
            looks.canvas.lower(),
            looks.accepted_wash.lower(),
            looks.correction.lower(),
            looks.verify.lower(),
        } <= colours
        lone = {image.pixelColor(x, image.height() - 4).name() for x in range(0, 1536, 9)}
        assert lone == {looks.canvas.lower()}  # nothing runs over the lower edge


def test_a_very_long_reply_is_reported_and_its_picture_cut(qapp: QApplication, qtbot: QtBot, tmp_path: Path) -> None:
    theme.apply(qapp, "dark")
    reply = recording(*long_reply(20_000), finished())
    files = write_report(tmp_path / "long.html", reply, keep_ghosts=False, made=NOW)
    image = QImage(str(files[1]))
    assert (image.width(), image.height()) == (768, 30_000)
    assert Reader(files[0].read_text("utf-8")).said.count(" word") == 16_000
    assert read_recording(files[2]).text == reply.text


@pytest.mark.parametrize("prompt", ["x" * 20_000, "short"])
def test_a_line_without_a_space_does_not_widen_the_picture(
    qapp: QApplication, qtbot: QtBot, tmp_path: Path, prompt: str
) -> None:
    theme.apply(qapp, "light")
    reply = recording(cycle(0, ["y" * 20_000], "z" * 300), finished(), prompt=prompt)
    files = write_report(tmp_path / "wide.html", reply, keep_ghosts=False, made=NOW)
    image = QImage(str(files[1]))
    assert image.width() in (768, 1536) and image.height() > 20_300 / 90 * 20
    edge = image.width() - 8
    assert {image.pixelColor(edge, y).name() for y in range(0, image.height(), 7)} == {theme.LIGHT.canvas.lower()}
    assert "overflow-wrap: anywhere" in files[0].read_text("utf-8")


# In the window


def ask_and_export(bench: Bench, path: Path | str) -> ReplyView:
    view = next(turn for turn in bench.view.turns() if isinstance(turn, ReplyView))
    bench.window.reports.ask = lambda _, name: str(path)
    next(action for action in view._menu.actions() if action.text() == "Export report…").trigger()
    return view


@pytest.fixture
def asked(benches: BenchMaker) -> Bench:
    bench = benches()
    bench.ready()
    bench.ask("What is the capital of France?")
    return bench


def test_one_action_writes_page_picture_and_replay(asked: Bench, tmp_path: Path) -> None:
    view = ask_and_export(asked, tmp_path / "run.html")
    assert sorted(path.name for path in tmp_path.glob("run*")) == ["run.html", "run.json", "run.png"]
    assert view._figures.text().endswith("report saved as run.html, with .png and .json beside it")
    read = read_recording(tmp_path / "run.json")
    assert read.prompt == "What is the capital of France?" and read.cycles == tuple(paris().cycles)
    assert "Paris, a city on" in Reader((tmp_path / "run.html").read_text("utf-8")).said
    ask_and_export(asked, tmp_path / "run.html")  # an earlier report is replaced
    assert asked.banner == ""


def test_the_top_bar_exports_the_last_reply(asked: Bench, tmp_path: Path) -> None:
    asked.ask("And of Spain?")
    asked.window.reports.ask = lambda _, name: str(tmp_path / name)
    asked.qtbot.mouseClick(asked.window.top_bar.report_button, Qt.MouseButton.LeftButton)
    written = list(tmp_path.glob("specular-report-*.json"))
    assert len(written) == 1 and read_recording(written[0]).prompt == "And of Spain?"


def test_nothing_is_written_when_the_user_thinks_better(asked: Bench, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    view = ask_and_export(asked, "")
    assert sorted(tmp_path.iterdir()) == before and "report" not in view._figures.text()


def foreign_picture(tmp_path: Path) -> tuple[Path, str]:
    (tmp_path / "holiday.png").write_bytes(b"mine")
    return tmp_path / "holiday.html", "holiday.png is already there and was kept"


def no_folder(tmp_path: Path) -> tuple[Path, str]:
    return tmp_path / "gone" / "run.html", "cannot be written: No such file"


@pytest.mark.parametrize("place", [foreign_picture, no_folder])
def test_what_cannot_be_written_is_told(
    asked: Bench, tmp_path: Path, place: Callable[[Path], tuple[Path, str]]
) -> None:
    path, words = place(tmp_path)
    ask_and_export(asked, path)
    assert words in asked.banner and not path.exists()
    assert not (tmp_path / "holiday.png").exists() or (tmp_path / "holiday.png").read_bytes() == b"mine"
