#!/usr/bin/env python3
"""Brings the translations in step with the sources: `python assets/translations/update.py [release]`.

Qt's lupdate finds the texts of the window and keeps what has been translated; what it adds is to be filled in in the
.ts file. lrelease then makes the .qm file that the window reads, which is all that `release` does: `run.py` does it at
installation. Both tools come with PySide6.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def run(tool: str, *arguments: str) -> None:
    """One of PySide6's tools; its output is shown."""
    subprocess.run([Path(sys.executable).with_name(f"pyside6-{tool}"), *arguments], cwd=ROOT, check=True)


def release() -> None:
    """Make the .qm file of every language that has a file."""
    for target in sorted(HERE.glob("*.ts")):
        name = target.relative_to(ROOT).as_posix()
        run("lrelease", "-silent", name, "-qm", name.removesuffix(".ts") + ".qm")


def main() -> None:
    """Both steps for every language."""
    sources = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "app").rglob("*.py"))
    for target in sorted(HERE.glob("*.ts")):
        name = target.relative_to(ROOT).as_posix()
        run("lupdate", *sources, "-ts", name, "-no-obsolete", "-locations", "none", "-source-language", "en")
    release()


if __name__ == "__main__":
    release() if sys.argv[1:] == ["release"] else main()
