"""Text files along with a message: what is read and what refused, their tokens, the message they end up in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot
from window_bench import Bench, BenchMaker

from app.text_files import LARGEST, FileRefused, Reason, TextFile, read_text_file


@pytest.fixture
def bench(benches: BenchMaker) -> Bench:
    return benches()


def file_of(folder: Path, content: bytes, name: str = "notes.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def drop(bench: Bench, *paths: Path) -> QDropEvent:
    """As a file manager does, on the composer's field."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    target = bench.window.composer.input.viewport()
    none, left = Qt.KeyboardModifier.NoModifier, Qt.MouseButton.LeftButton
    enter = QDragEnterEvent(QPoint(5, 5), Qt.DropAction.CopyAction, data, left, none)
    QApplication.sendEvent(target, enter)
    assert enter.isAccepted()
    event = QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, left, none)
    QApplication.sendEvent(target, event)
    return event


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x7fELF\x02\x01\x00\x00", Reason.BINARY),
        (bytes(range(1, 9)) * 40, Reason.BINARY),
        ("naïve".encode("latin-1"), Reason.ENCODING),
        ("text".encode("utf-16"), Reason.ENCODING),
        (b"ok \xc3", Reason.ENCODING),
        (b"\xed\xa0\x80", Reason.ENCODING),
        (b"x" * (LARGEST + 1), Reason.LARGE),
        (b" \n\t\n", Reason.EMPTY),
        (b"", Reason.EMPTY),
    ],
)
def test_what_is_no_text_is_refused_in_a_sentence(tmp_path: Path, content: bytes, reason: Reason) -> None:
    with pytest.raises(FileRefused) as refused:
        read_text_file(file_of(tmp_path, content))
    assert refused.value.reason is reason
    assert str(refused.value).startswith("“notes.txt” ") and str(refused.value).count(".") <= 2


def test_folders_pipes_and_files_that_are_gone_are_refused(tmp_path: Path) -> None:
    found = [tmp_path, tmp_path / "none.txt"]
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe")
        found.append(tmp_path / "pipe")
    reasons = []
    for path in found:
        with pytest.raises(FileRefused) as refused:
            read_text_file(path)
        reasons.append(refused.value.reason)
    assert reasons == [Reason.NO_FILE, Reason.UNREADABLE, *[Reason.NO_FILE] * (len(found) - 2)]


def test_text_is_read_with_its_mark_and_line_ends_made_plain(tmp_path: Path) -> None:
    file = read_text_file(file_of(tmp_path, "\ufeffa\r\n你好\rb".encode()))
    assert file.text == "a\n你好\nb"
    assert len(read_text_file(file_of(tmp_path, b"x" * LARGEST)).text) == LARGEST


def test_names_cannot_deceive(tmp_path: Path) -> None:
    file = read_text_file(file_of(tmp_path, b"x", "a\u202etxt.`exe"))
    assert "\u202e" not in file.name and "`" not in file.name


def test_a_fence_in_the_file_does_not_end_its_own() -> None:
    quoted = TextFile("a.py", "```\nx\n````\n").quoted()
    assert quoted == "a.py:\n\n`````py\n```\nx\n````\n`````\n"


def test_a_dropped_file_is_shown_with_its_tokens_and_sent(bench: Bench, tmp_path: Path, qtbot: QtBot) -> None:
    bench.ready()
    drop(bench, file_of(tmp_path, b"one two three"))
    attached = bench.window.composer.attachments
    assert bench.window.composer.input.text() == "", "the field does not take the path"
    assert attached.labels() == ["notes.txt · about 3 tokens"]
    qtbot.waitUntil(lambda: "about" not in attached.labels()[0])
    assert attached.labels() == ["notes.txt · 5 tokens"], "a word each, in a message that has one word more"
    bench.ask("Summarise this")
    assert bench.said[0] == "Summarise this\n\nnotes.txt:\n\n```txt\none two three\n```\n"
    assert attached.files() == [] and attached.isHidden()


def test_a_file_alone_can_be_sent_and_one_can_be_left_out(bench: Bench, tmp_path: Path, qtbot: QtBot) -> None:
    bench.ready()
    composer = bench.window.composer
    assert not composer.button.isEnabled()
    drop(bench, file_of(tmp_path, b"first", "a.md"), file_of(tmp_path, b"second", "b.md"))
    assert composer.button.isEnabled() and len(composer.attachments.files()) == 2
    button = composer.attachments.remove_buttons()[0]
    assert button.accessibleName() == "Leave out a.md"
    button.click()
    composer.button.click()
    assert bench.said[0] == "b.md:\n\n```md\nsecond\n```\n"
    qtbot.waitUntil(lambda: bench.window.chat.busy_chat is None)


def test_a_refused_file_is_told_and_the_text_is_kept(bench: Bench, tmp_path: Path) -> None:
    composer = bench.window.composer
    composer.set_text("kept")
    drop(bench, file_of(tmp_path, b"\x00\x01"), file_of(tmp_path, b"good", "good.txt"))
    assert bench.banner == "“notes.txt” is not a text file."
    assert composer.input.text() == "kept" and [file.name for file in composer.attachments.files()] == ["good.txt"]


def test_no_more_than_ten_go_along(bench: Bench, tmp_path: Path) -> None:
    drop(bench, *[file_of(tmp_path, b"x", f"{i}.txt") for i in range(12)])
    assert len(bench.window.composer.attachments.files()) == 10 and "At most 10" in bench.banner


def test_files_are_counted_once_there_is_a_model(bench: Bench, tmp_path: Path, qtbot: QtBot) -> None:
    drop(bench, file_of(tmp_path, b"one two three"))
    assert "about" in bench.window.composer.attachments.labels()[0]
    bench.ready()
    qtbot.waitUntil(lambda: "about" not in bench.window.composer.attachments.labels()[0])


def test_files_are_chosen_in_a_dialog_too(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(file_of(tmp_path, b"chosen"))
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: ([path], ""))
    bench.window.composer.attach_button.click()
    assert [file.text for file in bench.window.composer.attachments.files()] == ["chosen"]


def test_the_draft_keeps_what_was_attached(bench: Bench, tmp_path: Path) -> None:
    bench.ready()
    bench.ask("a first question")
    bench.window.composer.set_text("unsent")
    drop(bench, file_of(tmp_path, b"attached"))
    first = bench.window.chat.chats.current.chat_id
    bench.window.chat.new_chat()
    assert bench.window.composer.text() == ""
    bench.window.chat.open_chat(first)
    assert bench.window.composer.text() == "unsent\n\nnotes.txt:\n\n```txt\nattached\n```\n"


def test_a_model_is_still_loaded_when_it_is_dropped(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    drop(bench, folder)
    assert bench.window.composer.attachments.files() == []
    bench.reach(bench.host.state)
