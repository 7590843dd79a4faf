"""Suffix look-ups: the longest suffix that is kept, its latest occurrence, and texts that repeat themselves."""

from __future__ import annotations

import random

import pytest

from engine.speculation.lookup import LONGEST, NOTHING, SHORTEST, SuffixIndex


def index_of(ids: list[int]) -> SuffixIndex:
    index = SuffixIndex()
    index.follow(ids)
    return index


def test_what_followed_the_latest_occurrence_is_found() -> None:
    index = index_of([1, 2, 3, 9, 1, 2, 4, 8, 7, 1, 2])
    found = index.find((), 3)
    assert (found.ids, found.length) == ((4, 8, 7), 2)
    assert index.find((), 1).ids == (4,)


def test_a_longer_suffix_wins_over_a_later_shorter_one() -> None:
    index = index_of([5, 1, 2, 3, 6, 2, 3, 7, 8, 1, 2, 3])
    assert (index.find((), 1).ids, index.find((), 1).length) == ((6,), 3)


def test_drafted_tokens_are_part_of_the_suffix_and_not_of_what_is_known() -> None:
    index = index_of([1, 2, 3, 4, 5, 1])
    assert index.find((), 4) == NOTHING
    assert index.find((2,), 2).ids == (3, 4)
    assert index.find((2, 3), 9).ids[:2] == (4, 5)
    assert index.find((9, 9), 2) == NOTHING
    index.follow([1, 2, 3, 4, 5, 1, 9])
    assert index.find((9, 9), 2) == NOTHING, "drafted tokens leave no trace"


def test_one_common_token_is_no_match_and_nothing_is_asked_for_nothing() -> None:
    index = index_of([1, 2, 1])
    assert index.find((), 4) == NOTHING
    assert index_of([1, 2, 3, 1, 2]).find((), 0) == NOTHING
    assert SuffixIndex().find((), 4) == NOTHING


@pytest.mark.parametrize("period", [(1, 2), (1, 2, 3), (4,)])
def test_a_text_that_repeats_itself_goes_on_beyond_its_end(period: tuple[int, ...]) -> None:
    ids = [8, *period * 3]
    found = index_of(ids).find((), 7)
    assert found.ids == (period * 8)[:7]
    drafted = period[:1]
    assert index_of(ids).find(drafted, 6).ids == (period * 8)[1:7]


def test_the_length_of_a_match_is_counted_beyond_the_longest_suffix_kept() -> None:
    text = list(range(20))
    assert index_of([*text, 99, *text[5:12]]).find((), 1).length == 7
    assert index_of([*text, 99, *text[:2]]).find((), 1).length == 2
    assert index_of([*text, 99, *text]).find((), 1).length == 12, "no more than is looked at"


def test_it_finds_what_a_search_through_the_text_finds() -> None:
    chance = random.Random(3)
    for _ in range(300):
        ids = [chance.randrange(4) for _ in range(chance.randrange(2, 40))]
        drafted = [chance.randrange(4) for _ in range(chance.randrange(3))]
        found = index_of(ids).find(drafted, 1)
        whole = ids + drafted
        expected = None
        for size in range(min(LONGEST, len(whole)), SHORTEST - 1, -1):
            ends = [end for end in range(size, len(ids)) if ids[end - size : end] == whole[-size:]]
            if ends:
                expected = ids[ends[-1]]
                break
        assert found.ids == (() if expected is None else (expected,)), (ids, drafted)


def test_following_in_pieces_is_following_at_once() -> None:
    ids = [1, 2, 3, 1, 2, 3, 1, 2]
    index = SuffixIndex()
    for end in range(len(ids) + 1):
        index.follow(ids[:end])
    assert len(index) == len(ids)
    assert index.find((), 5) == index_of(ids).find((), 5)
