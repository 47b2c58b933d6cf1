"""A line of `%fam` as its options and its prompt, and the mistakes in it; what options mean is left to the magic."""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import EscapedCommand

from famnb.endpoints import ENDPOINTS

_WORD = re.compile(r"""(?:[^\s"']+|"(?:[^"\\]|\\.)*"|'[^']*')+""")
"""A word of a shell's command line, quoted or not."""
_VARIABLE = re.compile(r"\{([A-Za-z_]\w*)\}")
FIELDS = tuple(
    name
    for name in dict.fromkeys(name for each in ENDPOINTS.values() for name in each.request.model_fields)
    if name != "stream"
)
"""What `--set` takes: `stream` has an option of its own, which decides how the reply is read, too."""
_FLAGS = ("--raw", "--no-stream", "--reset", "--help", "-h")
"""Options without a value."""


class Question(EscapedCommand):
    """A line of `%fam` that ends with a question mark is a question: IPython would look its last word up instead."""

    priority = 4  # before that of HelpEnd, 5

    @classmethod
    def find(cls, tokens_by_line: list[list[Any]]) -> Question | None:
        """The first such line."""
        for line in tokens_by_line:
            words = [token for token in line if token.string.strip()]
            if [token.string for token in words[:2]] == ["%", "fam"] and words[2:3] and words[2].start > words[1].end:
                return cls(words[0].start)
        return None


def split(line: str) -> tuple[list[str], str]:
    """The options at the beginning of a line as arguments, and the prompt after them as it stands; raises ValueError.

    Only the options are read like a shell's: an apostrophe in a prompt is an apostrophe.
    """
    arguments: list[str] = []
    rest = line.strip()
    while rest.startswith("-"):
        word, rest = _next(rest)
        if word == "--":
            break
        arguments.append(word)
        if word not in _FLAGS and "=" not in word and rest:
            value, rest = _next(rest)
            arguments.append(value)
    return arguments, rest


def _next(text: str) -> tuple[str, str]:
    found = _WORD.match(text)
    if found is None or text[found.end() : found.end() + 1].strip():
        raise ValueError("a quote is not closed")
    return shlex.split(found[0])[0] if found[0] else "", text[found.end() :].lstrip()


def unknown(option: str, known: Sequence[str]) -> str:
    """What to write instead of an option that is not one of the known."""
    name = option.partition("=")[0]
    field = name.strip("-").replace("-", "_")
    if field in FIELDS:
        return f"there is no option {name}; write --set {field}=VALUE"
    close = difflib.get_close_matches(name, known, 1)
    fields = difflib.get_close_matches(field, FIELDS, 1)
    if close or not fields:
        return f"there is no option {name}; " + (
            f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
        )
    return f"there is no option {name}; did you mean --set {fields[0]}=VALUE?"


def assigned(words: str) -> tuple[str, Any]:
    """A field and its value: JSON where it is JSON, else the text itself."""
    name, sign, value = words.partition("=")
    if not sign or not name.isidentifier():
        raise UsageError(f"--set: expected FIELD=VALUE, such as temperature=0.5, got {words!r}")
    if name == "stream":
        raise UsageError("--set: replies are streamed unless --no-stream is given; write that instead")
    if name not in FIELDS:
        close = difflib.get_close_matches(name, FIELDS, 1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; fields: {', '.join(FIELDS)}"
        raise UsageError(f"--set: {name} is no field of a request{hint}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def filled(prompt: str, names: Mapping[str, Any]) -> str:
    """The prompt with `{name}` replaced where there is such a variable, and left as it is where there is none."""
    return _VARIABLE.sub(lambda found: str(names[found[1]]) if found[1] in names else found[0], prompt)


def written(options: Mapping[str, Any]) -> Iterator[str]:
    """Options as one types them."""
    for name, value in options.items():
        if name == "set":
            yield from (f"--set {shlex.quote(f'{field}={json.dumps(given)}')}" for field, given in value.items())
        else:
            yield f"--{name.replace('_', '-')}" + ("" if value is True else f" {shlex.quote(str(value))}")
