"""Models in the hub's own cache, where other programs have put them: `models--OWNER--NAME/snapshots/COMMIT`."""

from __future__ import annotations

from pathlib import Path

from engine.library.shelf import Entry, Origin


def cached_models(cache: Path | None = None) -> tuple[Entry, ...]:
    """One entry for each model that could be opened, by name. cache: the folder, None for the hub's. Never fails."""
    if cache is None:
        from huggingface_hub.constants import HF_HUB_CACHE

        cache = Path(HF_HUB_CACHE)
    try:
        folders = sorted(path for path in cache.iterdir() if path.name.startswith("models--") and path.is_dir())
    except OSError:
        return ()
    found = ((folder, _snapshot(folder)) for folder in folders)
    return tuple(
        Entry(str(snapshot), Origin.HUB_CACHE, folder.name.removeprefix("models--").replace("--", "/"))
        for folder, snapshot in found
        if snapshot is not None
    )


def _snapshot(folder: Path) -> Path | None:
    """The snapshot that `main` stands for, or else the newest; None where none holds a model's weights."""
    try:
        main = folder / "refs" / "main"
        if main.is_file():
            named = folder / "snapshots" / main.read_text(encoding="utf-8").strip()
            if _holds_weights(named):
                return named
        snapshots = sorted((folder / "snapshots").iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    except (OSError, UnicodeDecodeError):
        return None
    return next((path for path in snapshots if _holds_weights(path)), None)


def _holds_weights(snapshot: Path) -> bool:
    """Whether there is a model in it, complete or not; other programs keep lone tokenizers and configs there too."""
    if not snapshot.is_dir():
        return False
    names = {path.name for path in snapshot.iterdir()}
    weights = any(name.endswith(".safetensors") for name in names) and "config.json" in names
    return weights or any(name.lower().endswith(".gguf") for name in names)
