"""`run.py`: which steps run, in which order, and what is said when one fails."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for the environment is a shell script")

# Stands in for .venv/bin/python: writes down its arguments, and fails where a file named after a step says so.
STAND_IN = """#!/bin/sh
here="$(dirname "$0")/.."
echo "$@" >> "$here/calls"
case "$*" in
*starter*) [ -e "$here/fail-starter" ] && echo "no network" && exit 3
    touch "$here/model.gguf"; echo "$here/model.gguf";;
*"pip install"*) [ -e "$here/fail-install" ] && echo "Collecting torch" && echo "no space left" && exit 1;;
*"pip --version"*) [ -e "$here/fail-pip" ] && exit 1;;
*pytest*) [ -e "$here/fail-tests" ] && echo "1 failed" && exit 1;;
*ruff*) [ -e "$here/fail-style" ] && exit 1;;
esac
exit 0
"""


TRANSLATIONS = "assets/translations/update.py release"


class Project:
    """A copy of the files that `run.py` needs, in a folder with a difficult name, with a stand-in environment."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a folder, gemütlich 日本"
        (self.root / "engine" / "kernels").mkdir(parents=True)
        (self.root / "engine" / "kernels" / "norm.py").write_text("pass\n")
        (self.root / "assets" / "translations").mkdir(parents=True)
        (self.root / "assets" / "translations" / "specular_zh_CN.ts").write_text("<TS/>")
        for name in ("run.py", "pyproject.toml"):
            shutil.copy(Path(run.__file__).parent / name, self.root)
        self.venv = self.root / ".venv"
        (self.venv / "bin").mkdir(parents=True)
        (self.venv / "pyvenv.cfg").write_text("version = 3.11\n")
        self.python = self.venv / "bin" / "python"
        self.python.write_text(STAND_IN)
        self.python.chmod(0o755)
        self.elsewhere = folder / "elsewhere"
        self.elsewhere.mkdir()

    def start(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `run.py` from another folder, with no screen and no NVIDIA card unless `environment` says so."""
        hidden = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "SPECULAR_DATA_DIR", "PYTHONPATH")
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        kept["PATH"] = os.pathsep.join(["/usr/bin", "/bin"])
        command = [sys.executable, str(self.root / "run.py"), *arguments]
        return subprocess.run(
            command, cwd=self.elsewhere, env=kept | environment, capture_output=True, encoding="utf-8", timeout=60
        )

    def calls(self) -> list[str]:
        """What the environment's Python was asked since the last look."""
        log = self.venv / "calls"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    def break_step(self, name: str) -> None:
        (self.venv / f"fail-{name}").touch()

    def repair(self, name: str) -> None:
        (self.venv / f"fail-{name}").unlink()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def ready(project: Project) -> Project:
    """A project whose set-up is done."""
    assert project.start("setup").returncode == 0
    project.calls()
    return project


def test_first_setup_does_every_step_in_order(project: Project) -> None:
    done = project.start("setup")
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.calls() == [
        "-m pip --version",
        "-m pip install -e .",
        "-m engine.files.starter",
        TRANSLATIONS,
        "-m engine.kernels.warm_up",
    ]
    assert "No NVIDIA card was found" in done.stdout
    assert list(project.elsewhere.iterdir()) == []


def test_second_start_does_no_step(ready: Project) -> None:
    done = ready.start("setup")
    assert done.stdout == "Specular is set up; start it with: python3 run.py\n"
    assert ready.calls() == []


@pytest.mark.parametrize(
    ("file", "step"),
    [
        ("pyproject.toml", "-m pip install -e ."),
        ("engine/kernels/norm.py", "-m engine.kernels.warm_up"),
        ("assets/translations/specular_zh_CN.ts", TRANSLATIONS),
        (".venv/pyvenv.cfg", "-m pip install -e ."),
    ],
)
def test_what_changed_is_done_again_and_nothing_else(ready: Project, file: str, step: str) -> None:
    path = ready.root / file
    path.write_text(f"# changed\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    assert ready.start("setup").returncode == 0
    steps = [call for call in ready.calls() if "pip --version" not in call]
    # New packages may bring another compiler, so the kernels follow them.
    assert steps == ([step, "-m engine.kernels.warm_up"] if "pip" in step else [step])


def test_settings_of_the_checks_install_nothing(ready: Project) -> None:
    with (ready.root / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    ready.start("setup")
    assert ready.calls() == []


def test_a_missing_starter_model_is_fetched_again(ready: Project) -> None:
    (ready.venv / "model.gguf").unlink()
    ready.start("setup")
    assert ready.calls() == ["-m engine.files.starter"]


def test_another_data_folder_gets_its_own_starter_model(ready: Project, tmp_path: Path) -> None:
    ready.start("setup", SPECULAR_DATA_DIR=str(tmp_path))
    assert ready.calls() == ["-m engine.files.starter"]
    ready.start("setup", SPECULAR_DATA_DIR=str(tmp_path))
    assert ready.calls() == []


def test_a_card_brings_the_cuda_extra(ready: Project, tmp_path: Path) -> None:
    tool = tmp_path / "nvidia" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    done = ready.start("setup", PATH=f"{tool.parent}:/usr/bin:/bin")
    assert "-m pip install -e .[cuda]" in ready.calls()
    assert "NVIDIA card is present" in done.stdout


def test_tests_add_their_tools_once_and_later_starts_keep_them(ready: Project) -> None:
    ready.start("test", "-k", "norm")
    assert ready.calls()[1:] == [
        "-m pip install -e .[test]",
        "-m engine.kernels.warm_up",
        "-m ruff check .",
        "-m pytest -k norm",
    ]
    ready.start("test")
    assert ready.calls() == ["-m ruff check .", "-m pytest"]
    ready.start("setup")
    assert ready.calls() == []


@pytest.mark.parametrize("what", ["tests", "style"])
def test_failing_tests_or_style_fail_the_run(ready: Project, what: str) -> None:
    ready.break_step(what)
    assert ready.start("test").returncode == 1
    assert "-m pytest" in ready.calls()
    ready.repair(what)
    assert ready.start("test").returncode == 0


@pytest.mark.parametrize(
    ("step", "sentence", "reason"),
    [
        ("install", "The packages could not be installed.", "no space left"),
        ("starter", "The starter model could not be fetched.", "no network"),
    ],
)
def test_a_failing_step_is_named_with_its_last_lines_and_done_next_time(
    project: Project, step: str, sentence: str, reason: str
) -> None:
    project.break_step(step)
    done = project.start("setup")
    assert done.returncode == 1
    assert sentence in done.stdout
    assert done.stdout.rstrip().endswith(reason)
    assert done.stderr == ""
    project.calls()
    project.repair(step)
    assert project.start("setup").returncode == 0
    assert any(step in call for call in project.calls())


def test_the_prompt_and_chat_and_window_go_where_they_belong(ready: Project) -> None:
    ready.start("--prompt", "Where is it?")
    (call,) = ready.calls()
    assert "engine.cli.main" in call
    assert call.endswith("generate --prompt Where is it?")
    done = ready.start()
    (call,) = ready.calls()
    assert call.endswith(" chat")
    assert done.stdout == "No display was found, so the conversation runs in this terminal.\n"
    done = ready.start("--theme", "dark", DISPLAY=":0")
    (call,) = ready.calls()
    assert "app.main" in call
    assert call.endswith(" --theme dark")
    assert done.stdout == ""
    ready.start("--smoke=out.png")
    assert "app.main" in ready.calls()[0]


@pytest.mark.parametrize("how", [("--data-dir", "my data"), ("--data-dir=my data",)])
def test_a_data_folder_of_ones_own_counts_for_the_set_up_too(ready: Project, how: tuple[str, ...]) -> None:
    ready.start("--prompt", "Where?", *how)
    fetched, asked = ready.calls()
    assert "engine.files.starter" in fetched and asked.endswith("generate --prompt Where?")
    assert str(ready.elsewhere / "my data") in (ready.venv / "specular-setup.json").read_text(encoding="utf-8")
    ready.start("--theme", "dark", *how, DISPLAY=":0")
    assert ready.calls()[-1].endswith(" --theme dark")
    assert ready.start("--data-dir").returncode == 0, "without a folder it is for the program to refuse"
    assert ready.calls()[-1].endswith("chat --data-dir")


def test_help_does_nothing_but_help(project: Project) -> None:
    done = project.start("--help")
    assert done.returncode == 0
    assert "python3 run.py test" in done.stdout
    assert project.calls() == []


def test_an_unreadable_state_means_a_new_setup(ready: Project) -> None:
    (ready.venv / "specular-setup.json").write_text("{")
    ready.start("setup")
    assert "-m pip install -e ." in ready.calls()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """`run` with its folders below `tmp_path`."""
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(run, "PYTHON", tmp_path / ".venv" / "bin" / "python")
    yield run


def test_an_unfinished_environment_is_made_anew(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    (module.VENV / "bin").mkdir(parents=True)
    (module.VENV / "bin" / "python").symlink_to("/no/such/python")
    module.make_environment()
    version = subprocess.run([module.PYTHON, "-m", "pip", "--version"], capture_output=True, text=True, check=True)
    assert str(module.VENV) in version.stdout
    assert "making it anew" in capsys.readouterr().out


def test_without_venv_module_the_line_to_run_is_named(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(module, "install_system_packages", lambda packages: False)
    with pytest.raises(module.SetUpFailed, match=r"sudo apt-get install -y python3\.\d+-venv"):
        module.make_environment()


def test_old_python_is_told_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    assert run.main(["setup"]) == 1
    assert capsys.readouterr().out.startswith("Specular needs Python 3.10 or newer, but this is ")


@pytest.mark.skipif(sys.platform != "linux", reason="these libraries belong to Linux")
def test_missing_qt_libraries_are_installed_or_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "QT_LIBRARIES", {"libc.so.6": "libc6", "libnotthere.so.1": "libnotthere1"})
    assert run.missing_qt_libraries() == ["libnotthere.so.1"]
    asked: list[list[str]] = []
    monkeypatch.setattr(run, "install_system_packages", lambda packages: bool(asked.append(packages)))
    monkeypatch.setattr(run, "debian_like", lambda: True)
    assert run.provide_qt_libraries() is False
    assert asked == [["libnotthere1"]]
    assert capsys.readouterr().out.rstrip().endswith("run: sudo apt-get install -y libnotthere1")
    monkeypatch.setattr(run, "debian_like", lambda: False)
    assert run.provide_qt_libraries() is False
    assert capsys.readouterr().out.rstrip().endswith("not installed: libnotthere.so.1")


def test_ctrl_c_is_one_line_and_the_next_start_goes_on(project: Project) -> None:
    project.python.write_text(
        STAND_IN.replace("#!/bin/sh", '#!/bin/sh\n[ "$2" = pip ] && [ "$3" = install ] && read x < "$FIFO"')
    )
    fifo = project.root / "fifo"
    os.mkfifo(fifo)
    command = [sys.executable, str(project.root / "run.py"), "setup"]
    environment = os.environ | {"FIFO": str(fifo), "PYTHONUNBUFFERED": "1"}
    with (
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process,
        fifo.open("w"),  # opens when the step waits for it
    ):
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert output.endswith("Stopped; the next start continues from here.\n")
    assert not (project.venv / "specular-setup.json").exists()
