"""What a file really is when it is not what its name says: an LFS pointer, a pickle, a zip, nothing."""

from __future__ import annotations

from pathlib import Path

from engine.errors import ModelFileError

ONLY_READ = "only safetensors and GGUF are read"
LFS_START = b"version https://git-lfs"
PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")


def read_start(path: Path, count: int = 64) -> bytes:
    """The first `count` bytes of a file. Raises ModelFileError when it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> ModelFileError:
    """The error for a file the system would not give us."""
    return ModelFileError(f"{path} cannot be read: {error.strerror or error}.")


def missing(path: Path) -> str:
    """That a file is not there, as a sentence without its full stop; of a link to nowhere, where it leads."""
    if path.is_symlink():
        return f"{path.name} in {path.parent} is a link to {path.readlink()}, which does not exist"
    return f"{path.name} is missing from {path.parent}"


def refuse_disguised(path: Path, start: bytes) -> None:
    """Raise ModelFileError when the first bytes show an empty file, a Git LFS pointer, a pickle or a zip."""
    if not start:
        raise ModelFileError(f"{path.name} is empty: the download is not complete.")
    if start.startswith(LFS_START):
        raise ModelFileError(
            f"{path.name} is a Git LFS pointer, not the file itself: the real file has not been downloaded."
        )
    if start.startswith(b"PK\x03\x04"):
        raise ModelFileError(f"{path.name} is really a zip archive (a PyTorch pickle?): {ONLY_READ}.")
    # A safetensors file may start with 0x80 too (the length of its header), but then has "{" as its ninth byte.
    if start[:1] == b"\x80" and start[1:2] in (b"\2", b"\3", b"\4", b"\5") and start[8:9] != b"{":
        raise ModelFileError(f"{path.name} is really a Python pickle: {ONLY_READ}.")
