"""The messages of a chat as a tree: what was said, what was said instead, and which of it is shown. No Qt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Node(Generic[T]):
    """One message. parent: the one it follows, None for a beginning. by_user: whose words it is."""

    id: int
    parent: int | None
    by_user: bool
    content: T


@dataclass(slots=True)
class Tree(Generic[T]):
    """Numbers grow with time, so that the last of several children is the newest."""

    _nodes: dict[int, Node[T]] = field(default_factory=dict)
    _children: dict[int | None, list[int]] = field(default_factory=dict)

    def add(self, node: Node[T]) -> None:
        """A message that was not there."""
        self._nodes[node.id] = node
        self._children.setdefault(node.parent, []).append(node.id)

    def remove(self, number: int) -> None:
        """A message and all that follows it."""
        doomed = [number]
        for one in doomed:  # grows as it goes: chats are too deep for recursion
            doomed += self._children.get(one, ())
        for one in reversed(doomed):
            self._drop(one)

    def _drop(self, number: int) -> None:
        node = self._nodes.pop(number, None)
        self._children.pop(number, None)
        if node is not None:
            self._children[node.parent].remove(number)

    def __contains__(self, number: int | None) -> bool:
        return number in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node[T]]:
        return iter(self._nodes.values())

    def node(self, number: int) -> Node[T]:
        """A message by its number. Raises KeyError."""
        return self._nodes[number]

    def path(self, leaf: int | None) -> list[Node[T]]:
        """All messages from the beginning to this one."""
        nodes: list[Node[T]] = []
        while leaf is not None and leaf in self._nodes:
            nodes.append(self._nodes[leaf])
            leaf = nodes[-1].parent
        return nodes[::-1]

    def siblings(self, number: int) -> list[int]:
        """What was said at this place by the same speaker, the message itself among it, oldest first."""
        node = self._nodes.get(number)
        if node is None:
            return [number]
        beside = self._children[node.parent]
        return [other for other in beside if self._nodes[other].by_user == node.by_user]

    def end_of(self, number: int) -> int:
        """The last message that follows this one, by the newest of all there are."""
        while children := self._children.get(number):
            number = max(children)
        return number

    def newest_leaf(self) -> int | None:
        """The end of the chat for which none is known."""
        roots = self._children.get(None)
        return self.end_of(max(roots)) if roots else None
