"""Finding chats by their titles and by what was said in them."""

from __future__ import annotations

from collections.abc import Iterator

from app.history import index
from app.history.reader import ROW, Reader, row_of
from app.history.rows import ChatRow, Hit, one_line

MOST_HITS = 60
MOST_MESSAGES = 6000  # looked at, the newest first; a chat counts once
PORTION = 400  # read at a time
MOST_ID = 2**62
BEFORE, AFTER = 18, 90  # characters of a message shown around what was found


def search(reader: Reader, query: str) -> list[Hit]:
    """Chats whose title has the words of the query, then those in which a message has; the last used ones first.

    Messages with the very words come before those whose words begin like them, which take longer to be found and are
    only looked for where there is room. Raises Unreadable.
    """
    words = query.split()
    if not words:
        return []
    hits = [Hit(row) for row in _by_title(reader, words)]
    seen = {hit.chat.id for hit in hits}
    for beginnings in (False, True):
        for row, message, text in _by_text(reader, query, beginnings, MOST_HITS - len(hits), seen):
            hits.append(Hit(row, message, *_around(text, [word.casefold() for word in words])))
    return hits


def _by_title(reader: Reader, words: list[str]) -> list[ChatRow]:
    conditions, values = [], []
    for word in words:
        # SQLite's LIKE knows the two cases of ASCII letters only.
        spellings = sorted({word, word.lower(), word.upper(), word.capitalize()} if not word.isascii() else {word})
        conditions.append("(" + " OR ".join(["title LIKE ? ESCAPE '\\'"] * len(spellings)) + ")")
        values += [f"%{_escaped(spelling)}%" for spelling in spellings]
    order = f"ORDER BY pinned DESC, updated DESC, id DESC LIMIT {MOST_HITS}"
    return reader.rows(
        f"SELECT {ROW} FROM chats WHERE deleted IS NULL AND {' AND '.join(conditions)} {order}", tuple(values)
    )


def _by_text(
    reader: Reader, query: str, beginnings: bool, most: int, seen: set[int]
) -> Iterator[tuple[ChatRow, int, str]]:
    """The newest message of each chat, up to `most`, that has not been `seen`; they are from now on.

    Read in portions: the newest messages with a common word may all be of one long chat.
    """
    found = _question(reader, query, beginnings)
    before, looked_at = MOST_ID, 0
    while found is not None and most > 0 and looked_at < MOST_MESSAGES:
        condition, values = found
        numbers = [number for (number,) in reader.all(condition, (*values, before, PORTION))]
        if numbers:
            for row in _newest_of_chats(reader, numbers):
                if row[0].id not in seen and most > 0:
                    seen.add(row[0].id)
                    most -= 1
                    yield row
            before = numbers[-1]
        looked_at += PORTION
        if len(numbers) < PORTION:
            return


def _question(reader: Reader, query: str, beginnings: bool) -> tuple[str, tuple[str, ...]] | None:
    """A query for numbers of messages below one, the newest first, and its values; None where nothing is asked."""
    if reader.all("SELECT 1 FROM single_values WHERE name = ? AND value = 'whole'", (index.WHOLE,)):
        asked = index.expression(query, beginnings=beginnings)
        if not asked:
            return None
        table = index.TABLE
        return f"SELECT rowid FROM {table} WHERE {table} MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?", (asked,)
    if beginnings:
        return None
    terms = query.split()
    like = " AND ".join(["text LIKE ? ESCAPE '\\'"] * len(terms))
    values = tuple(f"%{_escaped(term)}%" for term in terms)
    return f"SELECT id FROM messages WHERE {like} AND id < ? ORDER BY id DESC LIMIT ?", values


def _newest_of_chats(reader: Reader, numbers: list[int]) -> list[tuple[ChatRow, int, str]]:
    """Of these messages the newest of each chat, with its chat and its text."""
    columns = ", ".join(f"chats.{name}" for name in ROW.split(", "))
    among = ", ".join(str(number) for number in numbers)
    rows = reader.all(
        f"SELECT {columns}, messages.id, messages.text FROM messages JOIN chats ON chats.id = messages.chat "
        f"WHERE messages.id IN (SELECT max(id) FROM messages WHERE id IN ({among}) GROUP BY chat) "
        "AND chats.deleted IS NULL ORDER BY messages.id DESC"
    )
    return [(row_of(row[:5]), row[5], row[6]) for row in rows]


def _escaped(term: str) -> str:
    return term.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _around(text: str, words: list[str]) -> tuple[str, str, str]:
    """A little of the text before, at and after the first of the words."""
    folded = text.casefold()
    places = [(at, word) for word in words if (at := folded.find(word)) >= 0]
    if len(folded) != len(text) or not places:  # folding may change lengths; then the beginning must do
        return "", "", one_line(text, AFTER)
    at, word = min(places)
    start, end = max(0, at - BEFORE), at + len(word)
    if start and (space := text.find(" ", start, at)) >= 0:
        start = space + 1  # from the beginning of a word
    before = one_line(text[start:at] + "x", BEFORE + 2)[:-1]  # the x keeps the space before the match
    after = one_line("x" + text[end : end + AFTER], AFTER)[1:]
    return ("…" if start else "") + before, one_line(text[at:end], AFTER), after
