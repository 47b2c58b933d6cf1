"""What a tool says of an error."""

from __future__ import annotations

from famnb.errors import FamnbError


def error_text(error: Exception) -> str:
    """Return the message of an error, after its class unless it is an error of famnb."""
    # A message of famnb says what was wrong and what to do; that of another library may be as short as a key.
    return str(error) if isinstance(error, FamnbError) else f"{type(error).__name__}: {error}"
