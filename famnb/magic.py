"""`%fam` and `%%fam`: asking from a cell without Python; asking itself, and showing the reply, are the client's.

%%fam [options]      the cell is the prompt          %fam [options] prompt     the rest of the line is
%fam options         become defaults                 %fam                      shows defaults and help

MERGED: A line of `%fam` as its options and its prompt, and the mistakes in it; what options mean is left to the
magic.
"""

from __future__ import annotations

import difflib
import itertools
import json
import keyword
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import EscapedCommand
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments

from famnb.api import Client, connect
from famnb.endpoints import ENDPOINTS
from famnb.errors import FamnbError, Interrupted
from famnb.reply import Reply

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


_ENDPOINT = ("-e", "--endpoint")
_LOCAL = ("into", "using", "raw", "reset", "set", "prompt", "help")
"""Options that are no fields."""
_EXAMPLES = """
examples:
  %%fam -e messages -m fam-2-5-pro --thinking 1024 --into answer
  Why does it rain so much in {city}?

  %fam -e web --set temperature=0.2 What is a tide?
  %fam -e web                 from now on, unless said otherwise
"""


def load_ipython_extension(shell: InteractiveShell) -> None:
    """What `%load_ext famnb` calls: registers `%fam` and `%%fam`, and the completion of their options."""
    magics = FamMagics(shell)
    shell.register_magics(magics)
    matchers = shell.Completer.custom_matchers
    # Loading it again replaces what is there.
    matchers[:] = [each for each in matchers if getattr(each, "__qualname__", "") != FamMagics.complete.__qualname__]
    matchers.append(magics.complete)
    lines = shell.input_transformer_manager.token_transformers
    lines[:] = [*(each for each in lines if each.__qualname__ != Question.__qualname__), Question]


@magics_class
class FamMagics(Magics):
    """The two magics, with the defaults that `%fam` was given."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._shell = shell
        self._client: Client | None = None
        self._defaults: dict[str, Any] = {}

    @no_var_expand
    @magic_arguments("%fam")
    @argument(
        *_ENDPOINT,
        choices=tuple(ENDPOINTS),
        metavar="NAME",
        help=f"{', '.join(ENDPOINTS)}; without it, where the model is served",
    )
    @argument("-m", "--model", metavar="ID", help="the model's id; the endpoint's first unless said")
    @argument("-s", "--system", metavar="TEXT", help="system text; quote it")
    @argument("--max-tokens", metavar="N", type=int, help="at most so many generated tokens")
    @argument("--thinking", metavar="N", type=int, help="thinking budget in tokens, or the nearest reasoning effort")
    @argument("--set", action="append", metavar="FIELD=VALUE", help="any other field of the request; VALUE may be JSON")
    @argument("--no-stream", action="store_const", const=True, help="ask for the reply as a whole")
    @argument("--into", metavar="NAME", help="the variable that gets the reply, the partial one of a failure too")
    @argument("--using", metavar="NAME", help="the variable that holds the client; `client` unless said")
    @argument("--raw", action="store_const", const=True, help="leave {name} as it is")
    @argument("--reset", action="store_const", const=True, help="forget the defaults")
    @argument("-h", "--help", action="store_const", const=True, help="show this, and ask nothing")
    @argument("prompt", nargs="?", help="the rest of the line or the cell; {name} is replaced by that variable")
    @line_cell_magic
    def fam(self, line: str, cell: str | None = None) -> Reply | None:
        """Ask the API, streaming the reply under the cell."""
        given, prompt = self._read(line)
        if given.get("help"):
            print(_help())  # noqa: T201 - a magic's output
            return None
        if cell is not None and prompt:
            raise UsageError(f"%%fam: after the options there is {prompt[:40]!r}; the prompt belongs into the cell")
        prompt = prompt if cell is None else cell.strip()
        if not prompt:
            if cell is not None:
                raise UsageError("%%fam: the cell is empty; write the prompt below the line of options")
            self._settle(given)
            return None
        chosen = {**self._defaults, **given, "set": {**self._defaults.get("set", {}), **given.get("set", {})}}
        return self._asked(prompt, chosen)

    def _read(self, line: str) -> tuple[dict[str, Any], str]:
        """The options that a line gives, and what follows them."""
        try:
            arguments, rest = split(line)
        except ValueError as error:
            raise UsageError(f"%fam: {error} in {line.strip()[:60]!r}") from None
        parsed, unknown = FamMagics.fam.parser.parse_known_args(arguments)
        if unknown:
            raise UsageError(f"%fam: {unknown(unknown[0], _options())}")
        given = {name: value for name, value in vars(parsed).items() if value is not None}
        if "set" in given:
            given["set"] = dict(map(assigned, given["set"]))
        return given, rest

    def _settle(self, given: dict[str, Any]) -> None:
        """Take options as defaults, and show what holds; with none given, the help too."""
        alone = not given
        if given.pop("reset", False):
            self._defaults = {}
        fields = {**self._defaults.get("set", {}), **given.pop("set", {})}
        self._defaults = {**self._defaults, **given, **({"set": fields} if fields else {})}
        client = self._found(self._defaults.get("using"))
        shown = " ".join(written(self._defaults)) or "none: the model fam-2-5-pro on messages"
        print(f"client    {client!r}\nledger    {client.ledger.path}\ndefaults  {shown}")  # noqa: T201 - a magic's output
        if alone:
            print(f"\n{_help()}")  # noqa: T201 - a magic's output

    def _asked(self, prompt: str, chosen: dict[str, Any]) -> Reply:
        """Ask, and keep the reply; any failure is one line."""
        name, fields = chosen.get("into"), {**chosen["set"]}
        fields |= {key: value for key, value in chosen.items() if key not in (*_LOCAL, "no_stream")}
        if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
            raise UsageError(f"--into: {name!r} is no name for a variable")
        if not chosen.get("raw"):
            prompt = filled(prompt, self._shell.user_ns)
        client = self._found(chosen.get("using"))
        try:
            reply = client.ask(prompt, stream=not chosen.get("no_stream"), **fields)
        except (FamnbError, Interrupted) as error:
            if name and error.reply is not None:
                self._shell.user_ns[name] = error.reply
            if isinstance(error, Interrupted):
                raise
            raise UsageError(f"{type(error).__name__}: {' '.join(str(error).split())}") from None
        if name:
            self._shell.user_ns[name] = reply
        if client.viewer is None:
            print(reply.text)  # noqa: T201 - a terminal has no live view
        return reply

    def _found(self, name: str | None) -> Client:
        """The client that a variable holds, else one that is connected now and kept."""
        held = self._shell.user_ns.get(name or "client")
        if isinstance(held, Client):
            return held
        if name is not None:
            raise UsageError(f"--using: {name!r} is no famnb.Client; make one with {name} = famnb.connect()")
        if self._client is None:
            self._client = connect()
        return self._client

    @context_matcher()
    def complete(self, context: CompletionContext) -> SimpleMatcherResult:
        """What can follow in a line of `%fam`: options, endpoints, models, fields, clients."""
        before = context.text_until_cursor
        asked = re.match(r"\s*%%?fam\s", before)
        if asked is None:
            return {"completions": []}
        *earlier, word = ["", *before[asked.end() :].split(" ")]
        found = [each for each in self._candidates(earlier, word) if each.startswith(word)]
        return {
            "completions": [SimpleCompletion(text=each, type="fam") for each in found],
            "matched_fragment": word,
            "suppress": bool(found),
        }

    def _candidates(self, earlier: list[str], word: str) -> Iterator[str]:
        default = str(self._defaults.get("endpoint"))
        endpoint = next((after for name, after in itertools.pairwise(earlier) if name in _ENDPOINT), default)
        chosen = [ENDPOINTS[endpoint]] if endpoint in ENDPOINTS else list(ENDPOINTS.values())
        match earlier[-1]:
            case "-e" | "--endpoint":
                yield from ENDPOINTS
            case "-m" | "--model":
                yield from dict.fromkeys(model for each in chosen for model in each.models)
            case "--set":
                here = {name for each in chosen for name in each.request.model_fields}
                yield from (f"{name}=" for name in FIELDS if name in here)
            case "--using":
                yield from (name for name, value in self._shell.user_ns.items() if isinstance(value, Client))
            case _ if word.startswith("-"):
                yield from _options()


def _options() -> list[str]:
    """The long names of all options."""
    return [each for each in FamMagics.fam.parser._option_string_actions if each.startswith("--")]


def _help() -> str:
    """What the options are, with examples."""
    # IPython's help begins with a mark for Sphinx.
    return f"{FamMagics.fam.parser.format_help().removeprefix('::').strip()}\n{_EXAMPLES.rstrip()}"
