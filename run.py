#!/usr/bin/env python3
"""Sets Specular up where it lies and starts it; needs nothing but Python 3.10 or newer.

    python3 run.py                 set up (first time only) and open the window
    python3 run.py --prompt "…"    answer once in the terminal
    python3 run.py test [args]     set up with the test tools, check the style, run the tests
    python3 run.py setup           set up only

Other arguments go to the window. Packages go into `.venv` beside this file, the starter model into the user's data
folder. What was done is noted in `.venv/specular-setup.json`, so a later start does none of it.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections import deque
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STATE = VENV / "specular-setup.json"
LOG = VENV / "specular-setup.log"
WINDOWS = sys.platform == "win32"
PYTHON = VENV / ("Scripts/python.exe" if WINDOWS else "bin/python")
CUDA_BUILDS = "https://download.pytorch.org/whl/cu128"  # the registry's build for Windows has no CUDA
APT = "sudo apt-get install -y"
TORCH = "torch>=2.8,<2.14"

# What Qt's offscreen, X11 and Wayland plugins load, and the Debian package of each.
QT_LIBRARIES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
}


class SetUpFailed(Exception):
    """A step failed; the text is one sentence, and perhaps the log's last lines below it."""


def say(text: str) -> None:
    print(text, flush=True)


# ---------------------------------------------------------------- steps


def read_state() -> dict[str, object]:
    """What earlier runs finished; empty when nothing is known for certain."""
    try:
        state = json.loads(STATE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def note(state: dict[str, object], **done: object) -> None:
    """Add finished steps to the state on disk, at once and atomically."""
    state.update(done)
    STATE.with_suffix(".new").write_text(json.dumps(state, indent=1), encoding="utf-8")
    os.replace(STATE.with_suffix(".new"), STATE)


def run_step(command: list[str | Path], failure: str) -> str:
    """Run a step with its output in the log and its latest line on the terminal; return its last line."""
    lines: deque[str] = deque(maxlen=15)
    live = sys.stdout.isatty()
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    with LOG.open("a", encoding="utf-8") as log, subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            log.write(line)
            lines.extend([line.rstrip()] if line.strip() else [])
            shown = f"  {line.strip()}"[: shutil.get_terminal_size().columns - 1 if live else 100]
            if live:
                print(f"\r\x1b[2K{shown}", end="", flush=True)
            elif line.lstrip().startswith(("Downloading", "Installing collected")):
                say(shown)
    if live:
        print("\r\x1b[2K", end="", flush=True)
    if process.returncode:
        tail = "\n".join(f"    {line}" for line in lines)
        raise SetUpFailed(f"{failure} The last lines of {LOG}:\n{tail}")
    return lines[-1] if lines else ""


def make_environment() -> None:
    """Make `.venv`, or make it anew when it is unfinished or its Python has gone."""
    if PYTHON.exists() and subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return
    if VENV.exists():
        say("The environment in .venv is unfinished; making it anew.")
        shutil.rmtree(VENV)
    if importlib.util.find_spec("ensurepip") is None:
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        if not install_system_packages([package]):
            raise SetUpFailed(f"Python's venv module is not complete here; run: {APT} {package}")
    say("Making the Python environment in .venv …")
    made = subprocess.run([sys.executable, "-m", "venv", VENV], capture_output=True, text=True)
    if made.returncode:
        shutil.rmtree(VENV, ignore_errors=True)
        raise SetUpFailed(f"The Python environment {VENV} could not be made: {(made.stdout + made.stderr).strip()}")


def install_key() -> str:
    """Changes when the project's packages, the environment's Python, or the place of the project change."""
    about = (ROOT / "pyproject.toml").read_bytes().partition(b"[tool.ruff]")[0]  # what follows only concerns checks
    about += (VENV / "pyvenv.cfg").read_bytes()
    about += f"{os.path.realpath(PYTHON)}{ROOT}".encode()
    return hashlib.sha256(about).hexdigest()


def kernels_key() -> str:
    """Changes when the source of a compiled kernel changes."""
    sources = sorted((ROOT / "engine" / "kernels").rglob("*.py"))
    about = "".join(f"{path.name}{path.stat().st_size}{path.stat().st_mtime_ns}" for path in sources)
    return hashlib.sha256(about.encode()).hexdigest()


def translations_key() -> str:
    """Changes when the window's texts in another language change."""
    about = b"".join(path.read_bytes() for path in sorted((ROOT / "assets" / "translations").glob("*.ts")))
    return hashlib.sha256(about).hexdigest()


def install_packages(extras: list[str]) -> None:
    """Install the project and what it needs, with the torch build that suits this machine."""
    if WINDOWS and "cuda" in extras:
        say("An NVIDIA card is present: installing torch's CUDA build (3 GB) …")
        run_step(
            [PYTHON, "-m", "pip", "install", "--index-url", CUDA_BUILDS, TORCH],
            "Torch's CUDA build could not be installed.",
        )
    elif "cuda" in extras:
        say("An NVIDIA card is present: the registry's torch for this system and the CUDA extra are installed.")
    else:
        say("No NVIDIA card was found: the registry's torch for this system is installed; the CPU computes.")
    say("Installing packages; the first time this takes some minutes …")
    target = f".[{','.join(extras)}]" if extras else "."
    run_step([PYTHON, "-m", "pip", "install", "-e", target], "The packages could not be installed.")


def set_up(test: bool = False) -> None:
    """Do every step that is not done yet. Raises SetUpFailed naming the first one that cannot be done."""
    state = read_state()
    had = state.get("extras")
    extras = set(had if isinstance(had, list) else [])
    wanted = extras | ({"test"} if test else set()) | ({"cuda"} if shutil.which("nvidia-smi") else set())
    if not (PYTHON.exists() and state.get("packages") == install_key() and wanted == extras):
        make_environment()
        install_packages(sorted(wanted))
        note(state, packages=install_key(), extras=sorted(wanted), kernels="")
    if not state.get("qt"):
        note(state, qt=provide_qt_libraries())
    folder, starter = os.environ.get("SPECULAR_DATA_DIR"), str(state.get("starter"))
    if not (os.path.exists(starter) and state.get("data") == folder):
        say("Fetching the starter model (93 MB, once) …")
        said = run_step([PYTHON, "-m", "engine.files.starter"], "The starter model could not be fetched.")
        note(state, data=folder, starter=said)
    if state.get("translations") != translations_key():
        release: list[str | Path] = [PYTHON, "assets/translations/update.py", "release"]
        run_step(release, "The window's translations could not be prepared.")
        note(state, translations=translations_key())
    if state.get("kernels") != kernels_key():
        say("Compiling the CPU kernels …")
        run_step([PYTHON, "-m", "engine.kernels.warm_up"], "The CPU kernels could not be compiled.")
        note(state, kernels=kernels_key())


# ---------------------------------------------------------------- the system's own packages


def debian_like() -> bool:
    """True on Debian, Ubuntu and their kin."""
    try:
        about = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        return False
    names = [line.split("=", 1)[1] for line in about.splitlines() if line.startswith(("ID=", "ID_LIKE="))]
    return any(word in name for name in names for word in ("debian", "ubuntu")) and bool(shutil.which("apt-get"))


def install_system_packages(packages: list[str]) -> bool:
    """Install Debian packages where this process may; False where it may not or it failed."""
    if WINDOWS or not debian_like() or os.geteuid() != 0:
        return False
    say(f"Installing system packages: {' '.join(packages)}")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run(["apt-get", "-q", *words], env=environment, capture_output=True, text=True)
    if done.returncode:
        say("apt-get failed: " + (done.stderr or done.stdout).strip().rpartition("\n")[2])
    return done.returncode == 0


def missing_qt_libraries() -> list[str]:
    """Names of the system libraries that Qt needs and this Linux lacks."""
    missing = []
    for name in QT_LIBRARIES if sys.platform == "linux" else ():
        try:
            ctypes.CDLL(name)
        except OSError:
            missing.append(name)
    return missing


def provide_qt_libraries() -> bool:
    """Install the missing Qt libraries where allowed, else print the one line to run; True when none is missing."""
    missing = missing_qt_libraries()
    packages = [QT_LIBRARIES[name] for name in missing]
    if not missing or (install_system_packages(packages) and not missing_qt_libraries()):
        return True
    what = f"; run: {APT} {' '.join(packages)}" if debian_like() else f": {', '.join(missing)}"
    say(f"The window needs system libraries that are not installed{what}")
    return False


# ---------------------------------------------------------------- commands


def has_display() -> bool:
    """False on a Linux session without a screen."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return sys.platform != "linux" or any(os.environ.get(name) for name in names)


def call(module: str, arguments: list[str]) -> int:
    """Become `module.main()` in the environment. The caller's folder stays, and never shadows a package of ours."""
    code = f"import sys; sys.path[0] = {str(ROOT)!r}; sys.argv[0] = 'specular'; import {module} as m"
    command = [str(PYTHON), "-c", f"{code}; sys.exit(m.main())", *arguments]
    if WINDOWS:
        return subprocess.run(command).returncode
    os.execv(PYTHON, command)


def with_data_folder(arguments: list[str]) -> list[str]:
    """Take `--data-dir FOLDER` out of the arguments: it counts for the set-up and for whatever is started then."""
    rest = list(arguments)
    for place, argument in enumerate(arguments):
        name, given, folder = argument.partition("=")
        if name == "--data-dir" and (given or arguments[place + 1 : place + 2]):
            os.environ["SPECULAR_DATA_DIR"] = os.path.abspath(os.path.expanduser(folder or arguments[place + 1]))
            del rest[place : place + 1 + (not given)]
            break
    return rest


def start(arguments: list[str]) -> int:
    """Open the window, or the terminal where a prompt is given or there is no display."""
    arguments = with_data_folder(arguments)
    set_up()
    options = {argument.split("=")[0] for argument in arguments}
    if "--prompt" in options:
        return call("engine.cli.main", ["generate", *arguments])
    if has_display() or options & {"--smoke", "--install-shortcut", "--uninstall-shortcut"}:
        return call("app.main", arguments)
    say("No display was found, so the conversation runs in this terminal.")
    return call("engine.cli.main", ["chat", *arguments])


def test(arguments: list[str]) -> int:
    """Style check and test suite; the exit status is 0 only when both pass."""
    set_up(test=True)
    style = subprocess.run([PYTHON, "-m", "ruff", "check", "."], cwd=ROOT).returncode
    tests = subprocess.run([PYTHON, "-m", "pytest", *arguments], cwd=ROOT).returncode
    if style:
        say("The style check failed; its findings stand above the tests.")
    return tests or style


def main(arguments: list[str]) -> int:
    if sys.version_info < (3, 10):  # noqa: UP036 (this file runs before any package manager checks)
        say(f"Specular needs Python 3.10 or newer, but this is {sys.version.split()[0]}.")
        return 1
    try:
        if arguments[:1] in (["--help"], ["-h"]):
            say(str(__doc__))
        elif arguments[:1] == ["setup"]:
            set_up()
            say("Specular is set up; start it with: python3 run.py")
        else:
            return test(arguments[1:]) if arguments[:1] == ["test"] else start(arguments)
        return 0
    except SetUpFailed as failure:
        say(str(failure))
        return 1
    except KeyboardInterrupt:
        say("\nStopped; the next start continues from here.")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
