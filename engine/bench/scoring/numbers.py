"""GSM8K: an answer is right where its last number is the one behind "####" in the reference."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

_NUMBER = re.compile(r"-?\$?\d[\d,]*(?:\.\d+)?")


def expected_number(reference: str) -> Decimal | None:
    """The number behind the last "####"; None where there is none."""
    _, mark, answer = reference.rpartition("####")
    return last_number(answer) if mark else None


def last_number(text: str) -> Decimal | None:
    """The last number in a text, without signs of currency and thousands."""
    found = _NUMBER.findall(text)
    if not found:
        return None
    try:
        return Decimal(found[-1].replace(",", "").replace("$", ""))
    except InvalidOperation:
        return None
