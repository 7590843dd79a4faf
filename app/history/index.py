"""The index of words: which messages say something. FTS5 where SQLite has it; without it messages are read through.

A writing system without spaces between words is indexed character by character, and a search for several characters is
a search for them in a row. So two Chinese characters are found as quickly as an English word, which an index of
trigrams would not do. Other words are found by their beginnings.
"""

from __future__ import annotations

import re
import sqlite3

TABLE = "words"
WHOLE = "index"  # in single_values: "whole" while every message that is over is in the index
# Han, kana, Thai, Lao, Myanmar, Khmer, Hangul: blocks in which words are not set apart, or run into their endings.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_dense = re.compile(f"([{_DENSE}])")
_word = re.compile(r"\w")


def has_fts5(db: sqlite3.Connection) -> bool:
    """Whether this SQLite can have the index."""
    try:
        db.execute("CREATE VIRTUAL TABLE temp.probe_of_fts5 USING fts5(text)")
        db.execute("DROP TABLE temp.probe_of_fts5")
    except sqlite3.OperationalError:
        return False
    return True


def is_whole(db: sqlite3.Connection) -> bool:
    """Whether the index can be asked."""
    found = db.execute("SELECT value FROM single_values WHERE name = ?", (WHOLE,)).fetchone()
    return found is not None and found[0] == "whole"


def make_whole(db: sqlite3.Connection) -> None:
    """Make the index of all messages, unless it is there. Where there can be none, an index that was made elsewhere
    counts as not whole from now on."""
    if not has_fts5(db):
        db.execute("DELETE FROM single_values WHERE name = ?", (WHOLE,))
        return
    if is_whole(db):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute(f"DROP TABLE IF EXISTS {TABLE}")
        db.execute(
            f"CREATE VIRTUAL TABLE {TABLE} USING fts5(text, content='', prefix='2 3', "
            'tokenize="unicode61 remove_diacritics 2")'
        )
        for message, text in db.execute("SELECT id, text FROM messages WHERE state <> 'writing'"):
            _insert(db, message, text)
        db.execute("INSERT OR REPLACE INTO single_values VALUES(?, 'whole')", (WHOLE,))
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def add(db: sqlite3.Connection, message: int, text: str) -> None:
    """A message is over: it can be found from now on."""
    if is_whole(db):
        _insert(db, message, text)


def remove(db: sqlite3.Connection, message: int, text: str) -> None:
    """A message that was added with this text can no longer be found."""
    if is_whole(db):
        db.execute(f"INSERT INTO {TABLE}({TABLE}, rowid, text) VALUES('delete', ?, ?)", (message, set_apart(text)))


def _insert(db: sqlite3.Connection, message: int, text: str) -> None:
    db.execute(f"INSERT INTO {TABLE}(rowid, text) VALUES(?, ?)", (message, set_apart(text)))


def set_apart(text: str) -> str:
    """The text with a space on both sides of each character of a dense writing system."""
    return _dense.sub(r" \1 ", text)


def expression(query: str, *, beginnings: bool) -> str:
    """What to ask the index for: every word of the query, or every word that begins like it. "" for nothing.

    A single letter says too little to be searched for in messages; a single Chinese character does not.
    """
    terms = []
    for word in query.split():
        quiet = set_apart(word.replace('"', " ").replace("\0", " "))
        letters = sum(1 for _ in _word.finditer(quiet))
        if letters == 0 or (letters == 1 and not _dense.search(quiet)):
            continue
        terms.append(f'"{quiet}"' + " *" * beginnings)
    return " AND ".join(terms)
