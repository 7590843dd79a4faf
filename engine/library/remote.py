"""Which files of a repository on the hub make up a model: safetensors and the texts beside them, or one GGUF.

Pickles, code, other formats and anything in folders of the repository are never asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ModelFileError
from engine.files.gguf_parts import PART_NAME, part_paths
from engine.files.shards import INDEX, SHARD_NAME, SINGLE
from engine.files.wording import shown

TEXTS = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "tokenizer.model",
    "spiece.model",
    "tiktoken.model",
    "vocab.json",
    "merges.txt",
)
NAMED = 6  # files that a refusal lists


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file as the hub describes it. sha256: of its contents, for large files; blob: git's name of a small one."""

    name: str
    size: int
    sha256: str | None = None
    blob: str | None = None


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """What is to be downloaded: these files of one commit, small ones first. file: the GGUF that was asked for."""

    repo: str
    commit: str
    files: tuple[RemoteFile, ...]
    file: str | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def name(self) -> str:
        """What to call it on the list."""
        return self.repo if self.file is None else f"{self.repo}/{self.file}"


def chosen_files(repo: str, files: Iterable[RemoteFile], wanted: str | None = None) -> tuple[RemoteFile, ...]:
    """The files to download, weights last. wanted: one GGUF file of the repository (any part stands for all).

    Raises ModelFileError where there is no model to be read, or several to choose from.
    """
    top = {file.name: file for file in files if "/" not in file.name and "\\" not in file.name}
    if wanted is not None:
        return _gguf_parts(repo, top, wanted)
    weights = _safetensors(repo, top)
    if weights:
        return tuple(top[name] for name in (*TEXTS, *weights) if name in top)
    return _only_gguf(repo, top)


def _safetensors(repo: str, top: Mapping[str, RemoteFile]) -> list[str]:
    """Names of the weights and their index; empty where the repository has none in this format."""
    names = sorted(name for name in top if name.endswith(".safetensors"))
    if SINGLE in top:
        weights = [SINGLE]
    else:
        weights = [name for name in names if (match := SHARD_NAME.fullmatch(name)) and match[1] == "model"]
        if not weights and "adapter_model.safetensors" in top:
            raise ModelFileError(f"{repo} holds an adapter for another model, not a model.")
        if not weights and len(names) == 1:
            weights = names
        if not weights and names:
            raise ModelFileError(f"{repo} holds {len(names)} safetensors files that do not belong together by name.")
    if weights and "config.json" not in top:
        raise ModelFileError(f"{repo} lacks config.json, so its weights cannot be read.")
    return [*([INDEX] if INDEX in top and weights != [SINGLE] else []), *weights]


def _only_gguf(repo: str, top: Mapping[str, RemoteFile]) -> tuple[RemoteFile, ...]:
    names = sorted(name for name in top if name.lower().endswith(".gguf"))
    firsts = [name for name in names if (match := PART_NAME.fullmatch(name)) is None or int(match[2]) == 1]
    if len(firsts) == 1:
        return _gguf_parts(repo, top, firsts[0])
    if firsts:
        listed = ", ".join(f"{name} ({top[name].size / 1e9:.1f} GB)" for name in firsts[:NAMED])
        more = f" and {len(firsts) - NAMED} more" if len(firsts) > NAMED else ""
        raise ModelFileError(f"{repo} holds {len(firsts)} GGUF files; choose one of them ({listed}{more}).")
    raise ModelFileError(f"{repo} holds no weights that are read here: only safetensors and GGUF are.")


def _gguf_parts(repo: str, top: Mapping[str, RemoteFile], wanted: str) -> tuple[RemoteFile, ...]:
    if wanted not in top or not wanted.lower().endswith(".gguf"):
        raise ModelFileError(f"{repo} holds no GGUF file called {shown(wanted)}.")
    parts = [path.name for path in part_paths(Path(wanted))]
    lacking = [name for name in parts if name not in top]
    if lacking:
        raise ModelFileError(f"{repo} holds {shown(wanted)}, but not its other part {lacking[0]}.")
    return tuple(top[name] for name in parts)
