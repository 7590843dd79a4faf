"""A model of this computer as `specular-cli models` tells it, and the names of models on the hub. Plain data: no Qt."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

FITS, STREAMED, TOO_LARGE = "fits", "fits streamed", "does not fit"
ADDED, DOWNLOADED, STARTER = "added", "downloaded", "starter"
HUB_CACHE, UNFINISHED = "hub cache", "download, not complete"
NAME = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One model. path: what a load takes, or "starter". origin: one of the names above. nbytes, context: 0 where not
    known. verdict: for this computer, None where it cannot be told. problem: why it cannot be loaded, "" where it can.
    """

    name: str
    path: str
    origin: str
    nbytes: int
    family: str
    dtype: str
    context: int
    verdict: str | None
    advice: str
    notes: tuple[str, ...]
    problem: str

    @property
    def deletes_files(self) -> bool:
        """Whether removing it deletes files, and not only its place on the list."""
        return self.origin in (DOWNLOADED, STARTER, UNFINISHED)


def known_model(values: dict[str, Any]) -> KnownModel:
    """From a line of `specular-cli models list --json`. Raises KeyError or TypeError for anything else."""
    return KnownModel(
        name=str(values["name"]),
        path=str(values["path"]),
        origin=str(values["origin"]),
        nbytes=int(values["bytes"] or 0),
        family=str(values["family"] or ""),
        dtype=str(values["dtype"] or ""),
        context=int(values["context"] or 0),
        verdict=values["verdict"],
        advice=str(values["advice"]),
        notes=tuple(map(str, values["notes"])),
        problem=str(values["problem"] or ""),
    )


@dataclass(frozen=True, slots=True)
class HubName:
    """A repository on the hub, and a GGUF in it where it holds several; "" for the model of the repository."""

    repo: str
    file: str = ""

    @property
    def shown(self) -> str:
        """As the list of models calls it."""
        return f"{self.repo}/{self.file}" if self.file else self.repo


def hub_name(text: str) -> HubName | None:
    """What a user typed or pasted: OWNER/NAME, OWNER/NAME/FILE.gguf, or the address of a page of either."""
    plain = text.strip().split("?")[0].split("#")[0]
    without_host = re.sub(r"^https?://[^/]+/", "", plain)
    parts = without_host.strip("/").split("/")
    if len(parts) < 2 or not all(NAME.fullmatch(part) and part.strip(".-") for part in parts[:2]):
        return None
    rest = parts[2:]
    if not rest or (without_host != plain and not rest[-1].lower().endswith(".gguf")):
        return HubName("/".join(parts[:2]))
    return HubName("/".join(parts[:2]), rest[-1]) if rest[-1].lower().endswith(".gguf") else None
