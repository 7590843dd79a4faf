"""Shortcut and file types on Windows: links made by the system's own shell, types of the present user only."""

from __future__ import annotations

import importlib
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.desktop.launch import icon_image
from engine.files.paths import data_dir

CLASS = "Specular.Model"
CLASSES = r"Software\Classes"
PLACES = ("Programs", "Desktop")  # the start menu, and the desktop

# Values come by the environment, so that no path is ever read as a part of the script.
MAKE = """
$shell = New-Object -ComObject WScript.Shell
foreach ($place in $env:SPECULAR_PLACES.Split(',')) {
  $file = Join-Path ([Environment]::GetFolderPath($place)) 'Specular.lnk'
  $link = $shell.CreateShortcut($file)
  $link.TargetPath = $env:SPECULAR_TARGET
  $link.Arguments = $env:SPECULAR_ARGUMENTS
  $link.WorkingDirectory = $env:SPECULAR_FOLDER
  $link.IconLocation = $env:SPECULAR_ICON
  $link.Description = 'Chat with a model that drafts and verifies itself'
  $link.Save()
  Write-Output $file
}
"""
REMOVE = """
foreach ($place in $env:SPECULAR_PLACES.Split(',')) {
  $file = Join-Path ([Environment]::GetFolderPath($place)) 'Specular.lnk'
  if (Test-Path -LiteralPath $file) { Remove-Item -LiteralPath $file; Write-Output $file }
}
"""

Run = Callable[[str, Mapping[str, str]], str]


def run_script(script: str, values: Mapping[str, str]) -> str:
    """Have PowerShell run a script; what it printed. Raises OSError where it cannot."""
    command = ["powershell", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-Command", script]
    result = subprocess.run(command, env=os.environ | dict(values), capture_output=True, text=True, timeout=120)
    if result.returncode:
        lines = result.stderr.strip().splitlines()
        raise OSError(result.returncode, lines[0] if lines else "PowerShell has failed", "Specular.lnk")
    return result.stdout


def install(command: Sequence[str], run: Run = run_script, registry: Any = None) -> list[Path]:
    """Make the links and register the type of models; the links and the icon. Raises OSError."""
    icon = icon_path()
    icon.parent.mkdir(parents=True, exist_ok=True)
    if not icon_image(256).save(str(icon)):
        raise OSError(0, "the icon cannot be written", str(icon))
    printed = run(
        MAKE,
        {
            "SPECULAR_PLACES": ",".join(PLACES),
            "SPECULAR_TARGET": command[0],
            "SPECULAR_ARGUMENTS": subprocess.list2cmdline(command[1:]),
            "SPECULAR_FOLDER": str(Path.home()),
            "SPECULAR_ICON": str(icon),
        },
    )
    register(command, icon, registry or importlib.import_module("winreg"))
    return [*_paths(printed), icon]


def uninstall(run: Run = run_script, registry: Any = None) -> list[Path]:
    """Take away what `install` made; what was there. Raises OSError."""
    found = _paths(run(REMOVE, {"SPECULAR_PLACES": ",".join(PLACES)}))
    unregister(registry or importlib.import_module("winreg"))
    if icon_path().exists():
        icon_path().unlink()
        found.append(icon_path())
    return found


def icon_path() -> Path:
    """Links and types show this file's picture."""
    return data_dir() / "specular.ico"


def register(command: Sequence[str], icon: Path, registry: Any) -> None:
    """Offer the program for models, without taking the place of one that the user has chosen for them."""
    values = {
        rf"{CLASSES}\{CLASS}": "GGUF language model",
        rf"{CLASSES}\{CLASS}\DefaultIcon": str(icon),
        rf"{CLASSES}\{CLASS}\shell\open\command": subprocess.list2cmdline([*command, "%1"]),
    }
    for key, value in values.items():
        with registry.CreateKey(registry.HKEY_CURRENT_USER, key) as handle:
            registry.SetValueEx(handle, "", 0, registry.REG_SZ, value)
    with registry.CreateKey(registry.HKEY_CURRENT_USER, rf"{CLASSES}\.gguf\OpenWithProgids") as handle:
        registry.SetValueEx(handle, CLASS, 0, registry.REG_SZ, "")


def unregister(registry: Any) -> None:
    """Take the type back."""
    keys = (r"\shell\open\command", r"\shell\open", r"\shell", r"\DefaultIcon", "")
    for key in keys:
        try:
            registry.DeleteKey(registry.HKEY_CURRENT_USER, rf"{CLASSES}\{CLASS}{key}")
        except FileNotFoundError:
            continue
    try:
        with registry.CreateKey(registry.HKEY_CURRENT_USER, rf"{CLASSES}\.gguf\OpenWithProgids") as handle:
            registry.DeleteValue(handle, CLASS)
    except FileNotFoundError:
        pass


def _paths(printed: str) -> list[Path]:
    return [Path(line.strip()) for line in printed.splitlines() if line.strip()]
