"""Who may speak for a job: HMAC-SHA256 over an event, with the job's token as the key.

The signed bytes are the event without its `sig` as canonical JSON: keys sorted,
no blanks, UTF-8. Any language can make them again from the parsed event.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

SIGNATURE_KEY = "sig"


def canonical(event: Mapping[str, Any]) -> bytes:
    """The bytes that are signed. Raises ValueError or TypeError for what JSON cannot say."""
    rest = {key: value for key, value in event.items() if key != SIGNATURE_KEY}
    text = json.dumps(
        rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    # A lone surrogate, which JSON can carry as an escape, has bytes here and nowhere else.
    return text.encode("utf-8", "surrogatepass")


def sign(event: Mapping[str, Any], token: str) -> str:
    """The value of `sig` for this event: 64 hex digits."""
    import hashlib  # these cost a publish of a job without a token 3 ms, for nothing
    import hmac

    return hmac.new(token.encode(), canonical(event), hashlib.sha256).hexdigest()


def verify(event: Mapping[str, Any], token: str | None) -> bool:
    """The event was made by somebody who knows the token; a job without a token asks for none.

    Takes the same time for every wrong signature, and never raises: an event
    comes from outside.
    """
    if token is None:
        return True
    given = event.get(SIGNATURE_KEY)
    if not token or not isinstance(given, str):
        return False
    try:
        wanted = sign(event, token)
    except (ValueError, TypeError, RecursionError):
        return False
    from hmac import compare_digest

    return compare_digest(wanted.encode(), given.encode("utf-8", "replace"))
