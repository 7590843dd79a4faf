"""Finding chats by their titles and by what was said in them."""

from __future__ import annotations

from app.history import index
from app.history.reader import ROW, Reader, row_of
from app.history.rows import ChatRow, Hit, one_line

MOST_HITS = 60
MOST_MESSAGES = 400  # looked at, the newest first; a chat counts once
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
        if len(hits) < MOST_HITS:
            for row, message, text in _by_text(reader, query, beginnings):
                if row.id not in seen and len(hits) < MOST_HITS:
                    seen.add(row.id)
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


def _by_text(reader: Reader, query: str, beginnings: bool) -> list[tuple[ChatRow, int, str]]:
    if reader.all("SELECT 1 FROM single_values WHERE name = ? AND value = 'whole'", (index.WHOLE,)):
        asked = index.expression(query, beginnings=beginnings)
        if not asked:
            return []
        found = f"SELECT rowid FROM {index.TABLE} WHERE {index.TABLE} MATCH ? ORDER BY rowid DESC LIMIT {MOST_MESSAGES}"
        values: tuple[str, ...] = (asked,)
    elif beginnings:
        return []
    else:
        terms = query.split()
        like = " AND ".join(["text LIKE ? ESCAPE '\\'"] * len(terms))
        found = f"SELECT id FROM messages WHERE {like} ORDER BY id DESC LIMIT {MOST_MESSAGES}"
        values = tuple(f"%{_escaped(term)}%" for term in terms)
    columns = ", ".join(f"chats.{name}" for name in ROW.split(", "))
    newest = f"SELECT max(id) FROM messages WHERE id IN ({found}) GROUP BY chat"
    rows = reader.all(
        f"SELECT {columns}, messages.id, messages.text FROM messages JOIN chats ON chats.id = messages.chat "
        f"WHERE messages.id IN ({newest}) AND chats.deleted IS NULL ORDER BY messages.id DESC LIMIT {MOST_HITS}",
        values,
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
