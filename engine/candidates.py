"""What the full model and the draft thought of a token of a reply and of its rivals. Plain data."""

from __future__ import annotations

from dataclasses import dataclass

from engine.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that might stand at a place. draft_prob: None where the draft computed nothing usable."""

    id: int
    piece: str
    draft_prob: float | None
    full_prob: float


@dataclass(frozen=True, slots=True)
class Candidates:
    """The rivals for one place of a reply, under the sampling settings of its request.

    token: the one that was asked about; full_rank, draft_rank: its place in each distribution, from 1, None where it
    could not have been drawn. full, draft: the best of each, best first; fewer than five where fewer can be drawn.
    accept: the chance that the draft's choice is the full model's, before either is drawn (greedy: 1 or 0).
    recipe: the draft's, which is the one in force now. read: tokens that had to be read again. seconds: all of it.
    """

    token: Candidate
    full: tuple[Candidate, ...]
    draft: tuple[Candidate, ...]
    full_rank: int | None
    draft_rank: int | None
    accept: float | None
    recipe: Recipe
    read: int
    seconds: float
