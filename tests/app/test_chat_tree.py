"""The tree of a chat's messages."""

from __future__ import annotations

from app.chat_tree import Node, Tree


def tree() -> Tree[str]:
    """1 - 2 - 3, with 4 beside 2 and 5 - 6 beside 1."""
    made: Tree[str] = Tree()
    for number, parent, by_user in (
        (1, None, True),
        (2, 1, False),
        (3, 2, True),
        (4, 1, False),
        (5, None, True),
        (6, 5, False),
    ):
        made.add(Node(number, parent, by_user, f"m{number}"))
    return made


def test_paths_siblings_and_ends() -> None:
    made = tree()
    assert [node.id for node in made.path(3)] == [1, 2, 3] and made.path(None) == [] == made.path(99)
    assert made.siblings(2) == made.siblings(4) == [2, 4] and made.siblings(1) == [1, 5]
    assert made.siblings(3) == [3] and made.siblings(99) == [99]
    assert (made.end_of(1), made.end_of(2), made.newest_leaf()) == (4, 3, 6), "the newest branch"
    assert Tree[str]().newest_leaf() is None


def test_only_what_the_same_speaker_said_is_another_version() -> None:
    made = tree()
    made.add(Node(7, 2, False, "odd"))
    assert made.siblings(3) == [3] and made.siblings(7) == [7]


def test_a_message_goes_with_all_that_follows_it() -> None:
    made = tree()
    made.remove(1)
    assert sorted(node.id for node in made) == [5, 6] and made.siblings(5) == [5]
    made.remove(99)
    assert len(made) == 2


def test_chats_are_deeper_than_recursion() -> None:
    made: Tree[int] = Tree()
    for number in range(20_000):
        made.add(Node(number, number - 1 if number else None, number % 2 == 0, number))
    assert len(made.path(19_999)) == 20_000 and made.end_of(0) == 19_999
    made.remove(0)
    assert len(made) == 0
