"""Where a link of a reply really leads, and what about it is odd. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from app.markdown.shown import displayed

OPENED = ("http", "https", "mailto")


@dataclass(frozen=True, slots=True)
class Target:
    """address: as it would be opened, every character of it visible. host: the computer it leads to, in the letters
    that decide; "" for none. opens: whether it may be opened at all. Oddities: user, what stands before an @ and is no
    part of the host; decoded, what a host in punycode is displayed as elsewhere; plain, whether it is not encrypted.
    """

    address: str
    host: str
    opens: bool
    user: str = ""
    decoded: str = ""
    plain: bool = False


def target_of(address: str) -> Target:
    """Judge an address."""
    address = address.strip()
    visible = "".join(c if "!" <= c <= "~" else _escaped(c) for c in address)
    parts = _split(visible)
    if parts is None or parts.scheme.lower() not in OPENED:
        return Target(visible, "", False)
    if parts.scheme.lower() == "mailto":
        return Target(visible, "", True)
    host = (parts.hostname or "").rstrip(".")
    user = parts.netloc.rpartition("@")[0]
    decoded = _decoded(host) if "xn--" in host else ""
    return Target(visible, host, bool(host), displayed(unquote(user)), decoded, parts.scheme.lower() == "http")


def _split(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        return parts if parts.hostname is None or "%" not in parts.hostname else _in_ascii(parts)
    except ValueError:
        return None


def _in_ascii(parts: SplitResult) -> SplitResult | None:
    """With a host that was written in other letters in punycode; None where it is no name of a host."""
    host = unquote(parts.hostname or "")
    try:
        ascii_host = host.encode("idna").decode("ascii")
    except UnicodeError:
        return None
    before, at, _ = parts.netloc.rpartition("@")
    port = f":{parts.port}" if parts.port else ""
    return parts._replace(netloc=f"{before}{at}{ascii_host}{port}")


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "replace"))


def _decoded(host: str) -> str:
    try:
        return displayed(host.encode("ascii").decode("idna"))
    except UnicodeError:
        return ""
