"""Control characters, which a server may send to act on a terminal, as escapes; imports nothing of famnb."""

from __future__ import annotations

_CONTROL_CHARACTERS = {
    code: chr(code).encode("unicode_escape").decode()
    for code in (
        *range(0x20),
        *range(0x7F, 0xA0),
        0x061C,
        0x200E,
        0x200F,
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
    )
    if chr(code) not in "\t\n"
}


def escape_controls(text: str) -> str:
    r"""Return a text with escapes such as `\x1b` for what would act on a terminal or reorder what it shows.

    Line feeds and tabs stay.
    """
    return text.translate(_CONTROL_CHARACTERS)
