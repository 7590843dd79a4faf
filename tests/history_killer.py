"""Kills a process that writes the history or the settings, again and again: python history_killer.py FOLDER KILLS SEED.

One process forks a writer for each kill, which costs no start of Python, and prints a line of JSON about what was left.
Writers say through a pipe what they gave to the store and what they were told is on the disk.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sqlite3
import sys
import time
from pathlib import Path

from app.history.operations import AddChat, AddMessage, AppendEvents, BeginReply, EndReply
from app.history.rows import USER, ChatRow, Ids, StoredReply
from app.history.writer import BATCH_SECONDS
from app.settings import AppSettings
from app.settings_store import SettingsStore
from history_rig import raw, shelf
from reply_builders import cycle

LONG_SECONDS = 1.5  # longer than what may be lost
EVENT_SECONDS = 0.004


def write_for_ever(folder: Path, pipe: int, kind: str) -> None:
    """What the window does while a reply is written, until someone puts an end to it."""

    def say(word: str, number: int) -> None:
        os.write(pipe, f"{word} {number} {time.monotonic()}\n".encode())

    ids = Ids()
    always = kind == "saving"  # in the middle of writing
    with shelf(folder, batch_seconds=0.0 if always else BATCH_SECONDS) as store:
        writer = store.writer
        chat, now = ids.next(), time.time()
        writer.put(AddChat(ChatRow(chat, f"Chat {os.getpid()}", False, now, now)))
        parent = None
        while True:
            question = ids.next()
            assert writer.put(AddMessage(question, chat, parent, USER, f"Question {question}", time.time())).wait()
            say("stored", question)
            reply = parent = ids.next()
            writer.put(BeginReply(reply, chat, question, time.time(), StoredReply()))
            for number in range(10_000 if kind == "long" else 60):
                writer.put(AppendEvents(reply, [cycle(number, [f"{number} ", "and "], "on ")]))
                say(f"event:{reply}", number)
                time.sleep(EVENT_SECONDS)
            assert writer.put(EndReply(reply)).wait()
            say("stored", reply)


def save_for_ever(folder: Path, pipe: int) -> None:
    """Settings that change all the time, each with a prompt of some kilobytes."""
    store, count = SettingsStore(folder), store_count(folder)
    while True:
        count += 1
        assert store.save(AppSettings(top_k=count, system_prompt="word " * 2000)) is None
        os.write(pipe, f"stored {count} {time.monotonic()}\n".encode())


def store_count(folder: Path) -> int:
    """What the settings file has."""
    return SettingsStore(folder).load().settings.top_k


def look_at_settings(folder: Path, said: list[list[str]]) -> dict[str, object]:
    """Is the file whole, and is what was saved last in it?"""
    loaded = SettingsStore(folder).load()
    promised = [int(number) for _, number, _ in said]
    return {
        "integrity": "ok" if loaded.settings.system_prompt == "word " * 2000 else "broken",
        "told": list(loaded.notes),
        "promised": len(promised),
        "broken promises": int(loaded.settings.top_k < promised[-1]),
        "left over": len(list(folder.glob("*.part"))),
    }


def kill_once(folder: Path, rng: random.Random, kind: str) -> dict[str, object]:
    """Start a writer, kill it at some moment, and look at what it left."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        if kind == "settings":
            save_for_ever(folder, theirs)
        write_for_ever(folder, theirs, kind)
    os.close(theirs)
    select.select([ours], [], [], 20)  # its first question is stored
    time.sleep(LONG_SECONDS if kind == "long" else rng.uniform(0.0, 0.45 if kind == "reply" else 0.2))
    os.kill(child, signal.SIGKILL)
    killed = time.monotonic()
    os.waitpid(child, 0)
    with os.fdopen(ours) as pipe:
        said = [line.split() for line in pipe.read().splitlines() if line.count(" ") == 2]
    return {"kind": kind, **(look_at_settings(folder, said) if kind == "settings" else look(folder, said, killed))}


def look(folder: Path, said: list[list[str]], killed: float) -> dict[str, object]:
    """Is the file whole, is all that was promised in it, and how old is the oldest thing that is missing?"""
    check: sqlite3.Connection = raw(folder)
    whole = check.execute("PRAGMA integrity_check").fetchone()[0]
    check.close()
    with shelf(folder) as store, store.reading() as reader:
        told = store.told
        kept = dict(reader.all("SELECT id, text FROM messages"))
        states = {state for (state,) in reader.all("SELECT DISTINCT state FROM messages")}
        records = {int(name.split(":")[1]) for name, *_ in said if name.startswith("event:")}
        events = {number: reader.reply(number) for number in records if number in kept}
    promised = [int(number) for name, number, _ in said if name == "stored"]
    lost = [float(at) for name, number, at in said if name.startswith("event:") and not _has(kept, name, number)]
    return {
        "integrity": whole,
        "told": told,
        "states": sorted(states),
        "promised": len(promised),
        "broken promises": sum(number not in kept for number in promised),
        "events": len(said) - len(promised),
        "lost seconds": max((killed - at for at in lost), default=0.0),
        "records agree": all(
            reply is not None and len(reply.events) * 3 == len(kept[number].split()) for number, reply in events.items()
        ),
    }


def _has(kept: dict[int, str], name: str, number: str) -> bool:
    """Whether the event's text came into the file."""
    return f"{number} and on " in kept.get(int(name.split(":")[1]), "")


def main() -> None:
    folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    for number in range(kills):
        kind = "long" if number % 10 == 9 else ("saving", "reply", "settings")[number % 3]
        print(json.dumps(kill_once(folder, rng, kind)), flush=True)


if __name__ == "__main__":
    main()
