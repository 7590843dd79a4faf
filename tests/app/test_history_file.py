"""The history's file in every state: new, of an earlier or a newer version, damaged, cut, locked, nowhere to be put."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest
from fake_engine import paris, text_of

from app.history import index, opening, schema
from app.history.copying import AddWholeChat
from app.history.opening import FILE_NAME
from app.history.operations import (
    AddMessage,
    AppendEvents,
    BeginReply,
    ChangeChat,
    DeleteChat,
    RemoveChat,
    ResumeReply,
    SetComparison,
    TakeBack,
)
from app.history.reader import Unreadable
from app.history.rows import OVER, USER, ChatRow, StoredChat, StoredMessage, StoredReply
from app.history.search import search
from engine.comparison import Comparison
from engine.records import Finished
from history_rig import Shelf, raw, shelf

EVENTS = paris().events()
ANSWER = text_of(EVENTS)


def fill(store: Shelf, chats: int = 3, messages: int = 4) -> list[int]:
    """Some chats with questions and answers."""
    made = []
    for number in range(chats):
        made.append(store.chat(f"Chat {number}"))
        parent = None
        for turn in range(messages // 2):
            question = AddMessage(
                store.ids.next(), made[-1], parent, USER, f"Question {turn} " + "word " * 200, time.time()
            )
            store.do(question)
            parent = store.answer(made[-1], question.id, EVENTS)
    return made


def test_what_was_said_is_there_after_a_restart(tmp_path: Path) -> None:
    with shelf(tmp_path) as store:
        chat = store.chat("Why?", pinned=True)
        question = store.say(chat, "Why is it so?")
        reply = store.answer(chat, question, EVENTS)
        store.do(SetComparison(reply, Comparison(18, None, 18, 18, 2.0, 1.0)))
        store.do(ChangeChat(chat, settings={"temperature": 0.5}, draft="and then"))
    with shelf(tmp_path) as store, store.reading() as reader:
        found = reader.chat(chat)
        assert found is not None and store.told == []
        assert (found.row.title, found.row.pinned) == ("Why?", True)
        assert (found.settings, found.draft, found.leaf) == ({"temperature": 0.5}, "and then", reply)
        assert [(m.parent, m.role, m.state, m.text) for m in found.messages] == [
            (None, "user", "over", "Why is it so?"),
            (question, "assistant", "over", ANSWER),
        ]
        kept = reader.reply(reply)
        assert kept is not None and kept.events == EVENTS, "every cycle with all its figures"
        assert kept.comparison is not None and kept.comparison.speed_up == 2.0


def test_a_reply_that_was_being_written_counts_as_interrupted(tmp_path: Path) -> None:
    with shelf(tmp_path) as store:
        chat = store.chat()
        question = store.say(chat, "One?")
        reply = store.ids.next()
        store.do(BeginReply(reply, chat, question, 0.0, StoredReply()), AppendEvents(reply, EVENTS[2:4]))
        with store.reading() as reader:
            assert search(reader, "capital") == [], "found once it is over"
    with shelf(tmp_path) as store, store.reading() as reader:
        assert store.openings[0].interrupted == [chat]
        found = reader.chat(chat)
        assert found is not None and found.messages[-1].state == "interrupted"
        assert found.messages[-1].text == "The capital of France is"
        assert [hit.message for hit in search(reader, "capital")] == [reply]
        store.do(ResumeReply(reply, EVENTS[2:4]), AppendEvents(reply, EVENTS[4:]))
        with store.reading() as later:
            again = later.chat(chat)
            assert again is not None and again.messages[-1].text == ANSWER, "and can be written on"
    with shelf(tmp_path) as store:
        assert store.openings[0].interrupted == [chat], "once more"
    with shelf(tmp_path) as store:
        assert store.openings[0].interrupted == []


def test_a_file_of_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / FILE_NAME)
    for statement in schema.STEPS[0]:
        old.execute(statement)
    old.execute("INSERT INTO chats(id, title, created, updated, leaf) VALUES(1, 'Old', 5, 6, 3)")
    old.execute("INSERT INTO messages VALUES(2, 1, NULL, 'user', 'over', 5, '旧的问题')")
    old.execute("INSERT INTO messages VALUES(3, 1, 2, 'assistant', 'over', 6, 'an early answer')")
    old.execute("INSERT INTO replies(message, request, model) VALUES(3, '{}', 'null')")
    old.execute("PRAGMA user_version = 1")
    old.commit()
    old.close()
    with shelf(tmp_path) as store, store.reading() as reader:
        assert store.told == []
        found = reader.chat(1)
        assert found is not None and (found.row.title, found.draft, len(found.messages)) == ("Old", "", 2)
        assert [hit.message for hit in search(reader, "early")] == [3]
        assert [hit.message for hit in search(reader, "问题")] == [2], "what was there is in the index"
        assert schema.version_of(store.openings[0].db) == schema.VERSION == 2


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shelf(tmp_path) as store:
        store.chat("Kept")
    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, ("CREATE TABLE new(id)", "no such statement")))
    monkeypatch.setattr(schema, "VERSION", 3)
    db = opening.connection(tmp_path / FILE_NAME)
    with pytest.raises(sqlite3.OperationalError, match="syntax error"):
        schema.bring_up_to_date(db)
    db.close()
    file = raw(tmp_path)
    assert file.execute("PRAGMA user_version").fetchone()[0] == 2
    assert file.execute("SELECT title FROM chats").fetchall() == [("Kept",)]
    assert not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'new'").fetchall()
    file.close()


def test_a_newer_file_is_left_alone_and_said_so(tmp_path: Path) -> None:
    newer = raw(tmp_path)
    newer.execute("CREATE TABLE of_the_future(id)")
    newer.execute("PRAGMA user_version = 999")
    newer.commit()
    newer.close()
    before = (tmp_path / FILE_NAME).read_bytes()
    with shelf(tmp_path) as store, store.reading() as reader:
        assert store.notes[0].lasting
        assert "newer version of Specular (format 999, this one writes 2)" in store.told[0]
        chat = store.chat("Of this run")
        assert [row.id for row in reader.chats(None, 9)] == [chat]
    assert (tmp_path / FILE_NAME).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize(
    "content", [b"", b"not a database, but long enough to have a header " * 40, b"SQLite format 3"]
)
def test_any_file_in_its_place_is_survived(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with shelf(tmp_path) as store, store.reading() as reader:
        chat = store.chat("New")
        assert [row.id for row in reader.chats(None, 9)] == [chat]
        assert len(store.told) == bool(content)
    kept = list(tmp_path.glob("history.broken-*.db"))
    assert [path.read_bytes() for path in kept] == ([content] if content else [])


@pytest.mark.parametrize("damage", ["half", "flipped head", "flipped middle", "flipped everywhere"])
def test_a_damaged_file_is_set_aside_and_the_rest_brought_over(tmp_path: Path, damage: str) -> None:
    with shelf(tmp_path) as store:
        made = fill(store, 40)
    path = tmp_path / FILE_NAME
    data = bytearray(path.read_bytes())
    size = len(data)
    if damage == "half":
        del data[size // 2 :]
    else:
        places = {
            "flipped head": range(0, 4096, 16),
            "flipped middle": range(size // 2, size // 2 + 8192, 16),
            "flipped everywhere": range(100, size, 2048),
        }[damage]
        for place in places:
            data[place] ^= 0x5A
    path.write_bytes(bytes(data))
    released: list[bool] = []
    with shelf(tmp_path, lambda: released.append(True)) as store:
        found = readable(store)
        fresh = store.chat("After it")
        assert store.do(AddMessage(store.ids.next(), fresh, None, USER, "Still there?", time.time())).written
        assert fresh in {row.id for row in store.reader.chats(None, 200)}
    file = raw(tmp_path)
    assert file.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    file.close()
    aside = list(tmp_path.glob("history.broken-*.db"))
    assert len(aside) == 1 and aside[0].stat().st_size == len(data), "kept as it was found"
    assert "was damaged" in store.told[0] and aside[0].name in store.told[0]
    if damage == "flipped middle":
        assert len(found & set(made)) >= 20, f"{len(found)} of 40 chats"


def readable(store: Shelf) -> set[int]:
    """Read all that there is, as a user who looks at every chat; damage that is met is mended by the writer."""
    for _ in range(2):
        found: set[int] = set()
        try:
            with store.reading() as reader:
                found = {row.id for row in reader.chats(None, 200)}
                for row in found:
                    chat = reader.chat(row)
                    for message in chat.messages if chat is not None else ():
                        reader.reply(message.id)
                reader.all("SELECT count(*), sum(length(data)) FROM records")
                if store.notes:
                    break
        except Unreadable as error:
            assert error.damaged
        store.writer.mend()
        store.chat("After the mending")
    return found


def test_a_locked_file_is_waited_for_and_then_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "BUSY_SECONDS", 0.05)
    with shelf(tmp_path) as store:
        store.chat("Seen")
    other = raw(tmp_path)
    other.execute("BEGIN IMMEDIATE")
    with shelf(tmp_path) as store, store.reading() as reader:
        assert store.notes[0].lasting and "locked" in store.told[0]
        assert [row.title for row in reader.chats(None, 9)] == ["Seen"], "shown from a copy"
        store.chat("Not kept")
    other.rollback()
    assert other.execute("SELECT title FROM chats").fetchall() == [("Seen",)]
    other.close()


def test_a_lock_that_goes_away_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.history import writer

    monkeypatch.setattr(writer, "RETRY_SECONDS", 0.02)
    with shelf(tmp_path) as store:
        store.openings[0].db.execute("PRAGMA busy_timeout = 20")
        chat = store.chat()
        other = raw(tmp_path)
        other.execute("BEGIN IMMEDIATE")
        late = AddMessage(store.ids.next(), chat, None, USER, "Kept after all", 0.0)
        assert not store.do(late).written, "nobody waits for it"
        assert len(store.told) == 1 and "cannot be written at the moment" in store.told[0]
        other.rollback()
        other.close()
    with shelf(tmp_path) as store, store.reading() as reader:
        found = reader.chat(chat)
        assert found is not None and [message.text for message in found.messages] == ["Kept after all"]


def test_a_full_disk_is_told_once_and_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.history import writer

    monkeypatch.setattr(writer, "RETRY_SECONDS", 0.02)
    with shelf(tmp_path) as store:
        chat = store.chat()
        db = store.openings[0].db
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages}")
        big = AddMessage(store.ids.next(), chat, None, USER, "x" * 100_000, 0.0)
        assert not store.do(big).written
        assert not store.do(ChangeChat(chat, title="Later")).written
        assert len(store.told) == 1 and "full" in store.told[0]
        db.execute("PRAGMA max_page_count = 1000000")
    with shelf(tmp_path) as store, store.reading() as reader:
        found = reader.chat(chat)
        assert found is not None and (found.row.title, len(found.messages[0].text)) == ("Later", 100_000)


def test_a_folder_that_cannot_be_made_means_chats_of_one_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with shelf(tmp_path / "file" / "data") as store, store.reading() as reader:
        assert store.notes[0].lasting and "not kept" in store.told[0]
        chat = store.chat("Works all the same")
        store.answer(chat, store.say(chat, "One?"), EVENTS)
        assert [hit.chat.id for hit in search(reader, "museums")] == [chat]


def test_a_file_that_cannot_be_written_is_shown_and_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shelf(tmp_path) as store:
        kept = store.chat("From before")
    before = (tmp_path / FILE_NAME).read_bytes()
    usual = opening.connection
    monkeypatch.setattr(opening, "connection", lambda path: usual(path, read_only=True))
    with shelf(tmp_path) as store, store.reading() as reader:
        assert store.notes[0].lasting and "readonly" in store.told[0]
        store.chat("Of this run")
        assert [row.title for row in reader.chats(None, 9)] == ["Of this run", "From before"]
        assert reader.chat(kept) is not None
    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_a_deleted_chat_comes_back_or_goes_for_good(tmp_path: Path) -> None:
    with shelf(tmp_path) as store:
        chat, other = store.chat("Mine"), store.chat("Other")
        store.answer(chat, store.say(chat, "Unrepeatable"), EVENTS)
        with store.reading() as reader:
            store.do(DeleteChat(chat, 1.0))
            assert [row.id for row in reader.chats(None, 9)] == [other] and search(reader, "unrepeat") == []
            store.do(DeleteChat(chat, None))
            assert len(reader.chats(None, 9)) == 2 and len(search(reader, "unrepeat")) == 1
            store.do(DeleteChat(chat, 1.0))
    with shelf(tmp_path) as store, store.reading() as reader:
        assert reader.chat(chat) is None, "the next start makes it final"
        assert reader.all("SELECT count(*) FROM messages UNION ALL SELECT count(*) FROM records") == [(0,), (0,)]
    assert b"Unrepeatable" not in (tmp_path / FILE_NAME).read_bytes(), "nor is it left in unused pages"


def test_a_chat_of_two_thousand_messages_can_be_removed(tmp_path: Path) -> None:
    with shelf(tmp_path) as store:
        chat = store.ids.next()
        numbers = [store.ids.next() for _ in range(2000)]
        messages = [
            StoredMessage(number, parent, USER, OVER, 0.0, f"m{number}")
            for parent, number in zip([None, *numbers], numbers, strict=False)
        ]
        store.do(AddWholeChat(StoredChat(ChatRow(chat, "", False, 0, 0), {}, "", numbers[-1], tuple(messages))))
        store.do(RemoveChat(chat))
        with store.reading() as reader:
            assert reader.all("SELECT count(*) FROM messages") == [(0,)]
        assert store.told == []


def test_a_message_is_taken_back_with_what_follows_it(tmp_path: Path) -> None:
    with shelf(tmp_path) as store:
        chat = store.chat()
        first = store.say(chat, "Stays")
        second = store.say(chat, "Goes", first)
        store.answer(chat, second, EVENTS)
        store.do(TakeBack(second, chat, first))
        with store.reading() as reader:
            found = reader.chat(chat)
            assert found is not None and [m.text for m in found.messages] == ["Stays"] and found.leaf == first
            assert search(reader, "goes") == search(reader, "museums") == []
            assert reader.all("SELECT count(*) FROM records") == [(0,)]


def test_text_that_no_file_can_hold_is_held_all_the_same(tmp_path: Path) -> None:
    hostile = "half \ud83d pair, nul \0, \u202e reversed, <b>bold</b>"
    with shelf(tmp_path) as store:
        chat = store.chat(hostile)
        store.say(chat, hostile)
        assert store.told == []
        with store.reading() as reader:
            found = reader.chat(chat)
            assert found is not None
            expected = "half \ufffd pair, nul \ufffd, \u202e reversed, <b>bold</b>"
            assert (found.row.title, found.messages[0].text) == (expected, expected)
            assert [hit.chat.id for hit in search(reader, "reversed")] == [chat]


def test_damaged_records_leave_the_text(tmp_path: Path) -> None:
    with shelf(tmp_path) as store:
        chat = store.chat()
        reply = store.answer(chat, store.say(chat, "One?"), EVENTS)
        assert isinstance(EVENTS[-1], Finished)
        store.openings[0].db.execute("UPDATE records SET data = x'00112233'")
        with store.reading() as reader:
            found, kept = reader.chat(chat), reader.reply(reply)
            assert found is not None and found.messages[1].text == ANSWER
            assert kept is not None and kept.events == ()


def test_without_fts5_messages_are_read_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(index, "has_fts5", lambda db: False)
        with shelf(tmp_path) as store, store.reading() as reader:
            chat = store.chat("One")
            store.answer(chat, store.say(chat, "100% 推测"), EVENTS)
            assert [hit.match for hit in search(reader, "推测")] == ["推测"]
            assert [hit.match for hit in search(reader, "0%")] == ["0%"] and search(reader, "0_") == []
            assert not reader.all("SELECT 1 FROM sqlite_master WHERE name = 'words'")
    with shelf(tmp_path) as store, store.reading() as reader:
        assert index.is_whole(store.openings[0].db), "made once there is FTS5"
        assert [hit.match for hit in search(reader, "推测")] == ["推测"]
