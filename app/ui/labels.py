"""Short words for the settings in force, as the chips under the composer show them."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from app.settings import AppSettings


def sampling_label(settings: AppSettings) -> str:
    """ "Greedy", or the temperature."""
    sampling = settings.sampling()
    if sampling.greedy:
        return QCoreApplication.translate("Labels", "Greedy")
    return QCoreApplication.translate("Labels", "Temperature {value}").format(value=f"{sampling.temperature:g}")


def speculation_label(settings: AppSettings) -> str:
    """Whether and how far the draft runs ahead."""
    if not settings.speculation:
        return QCoreApplication.translate("Labels", "Speculation off")
    if settings.gamma_fixed:
        return QCoreApplication.translate("Labels", "Speculation γ {count}").format(count=settings.gamma)
    return QCoreApplication.translate("Labels", "Speculation auto")
