"""The IPython magics `%fam` and `%%fam`, which ask the API from a cell without Python.

%%fam [options]      the cell is the prompt          %fam [options] prompt     the rest of the line is
%fam                 shows help

The reply is streamed by `Client.ask`, whose viewer shows it under the cell. Tab completes options, endpoints, models
and fields.
"""

from __future__ import annotations

import difflib
import itertools
import json
import keyword
import re
import shlex
from collections.abc import Iterator
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

_SHELL_WORD = re.compile(r"""(?:[^\s"']+|"(?:[^"\\]|\\.)*"|'[^']*')+""")
"""A word of a shell's command line, quoted or not."""
_VARIABLE = re.compile(r"\{([A-Za-z_]\w*)\}")
"""A variable in a prompt; if the notebook has none of that name, it stays as it is."""
FIELDS = dict.fromkeys(
    name for endpoint in ENDPOINTS.values() for name in endpoint.request.model_fields if name != "stream"
)
"""The fields that `--set` takes. `stream` has an option of its own, which also decides how the reply is read."""
_FLAGS = ("--raw", "--no-stream", "--help", "-h")
"""Options without a value."""


class FamLineTransformer(EscapedCommand):
    """Makes a line of `%fam` a magic, also one that ends with a question mark.

    IPython takes a question mark at the end of a line for a wish to read about its last word.
    """

    # Lower is earlier. HelpEnd, which takes the question mark, has 5 and EscapedCommand 10 in IPython 8 and 9.
    priority = 4

    @classmethod
    def find(cls, tokens_by_line: list[list[Any]]) -> FamLineTransformer | None:
        """Return a transformer of the first line of `%fam`, or None."""
        for line in tokens_by_line:
            tokens = [token for token in line if token.string.strip()]
            is_fam = [token.string for token in tokens[:2]] == ["%", "fam"]
            # `%fam` alone shows the defaults; `%fam?` asks for help, which is IPython's to show.
            if is_fam and tokens[2:3] and tokens[2].start > tokens[1].end:
                return cls(tokens[0].start)
        return None


def split_line(line: str) -> tuple[list[str], str]:
    """Split a line into the options at its beginning, as arguments, and the prompt after them, as it stands.

    Raises ValueError if a quote is not closed.
    """
    # Only the options are read like a shell's: an apostrophe in a prompt is an apostrophe.
    arguments: list[str] = []
    rest = line.strip()
    while rest.startswith("-"):
        word, rest = _next_word(rest)
        if word == "--":
            break
        arguments.append(word)
        if word not in _FLAGS and "=" not in word and rest:
            value, rest = _next_word(rest)
            arguments.append(value)
    return arguments, rest


def _next_word(text: str) -> tuple[str, str]:
    match = _SHELL_WORD.match(text)
    if match is None or text[match.end() : match.end() + 1].strip():
        raise ValueError("a quote is not closed")
    return shlex.split(match[0])[0], text[match.end() :].lstrip()


def parse_assignment(text: str) -> tuple[str, Any]:
    """Return the field and the value of FIELD=VALUE; the value is JSON, or else the text itself.

    Raises UsageError if it is not an assignment to a field of a request.
    """
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise UsageError(f"--set: expected FIELD=VALUE, such as temperature=0.5, got {text!r}")
    if name not in FIELDS:
        close = difflib.get_close_matches(name, FIELDS, 1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; fields: {', '.join(FIELDS)}"
        raise UsageError(f"--set: {name} is no field of a request{hint}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


_ENDPOINT = ("-e", "--endpoint")
_NOT_FIELDS = ("into", "using", "raw", "set", "prompt", "help", "no_stream")
"""Options that are not fields of a request."""
_EXAMPLES = """
examples:
  %%fam -e messages -m fam-2-5-pro --thinking 1024 --into answer
  Why does it rain so much in {city}?

  %fam -e web --set temperature=0.2 What is a tide?
"""


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register `%fam` and `%%fam`, and the completion of their options; `%load_ext famnb` calls this."""
    magics = FamMagics(shell)
    shell.register_magics(magics)
    # Loading it again replaces what is there. By name: `%reload_ext` has imported this module anew, so that what was
    # registered before is of another class.
    matchers, transformers = shell.Completer.custom_matchers, shell.input_transformer_manager.token_transformers
    for registered, new in ((matchers, magics.complete), (transformers, FamLineTransformer)):
        others = [other for other in registered if getattr(other, "__qualname__", "") != new.__qualname__]
        registered[:] = [*others, new]


@magics_class
class FamMagics(Magics):
    """The two magics, and the client that they connect."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._shell = shell
        self._client: Client | None = None

    @no_var_expand
    @magic_arguments("%fam")
    @argument(
        *_ENDPOINT,
        choices=tuple(ENDPOINTS),
        metavar="NAME",
        help=f"{', '.join(ENDPOINTS)}; without it, where the model is served",
    )
    @argument("-m", "--model", metavar="ID", help="the model's id; by default the endpoint's first")
    @argument("-s", "--system", metavar="TEXT", help="system text; quote it")
    @argument("--max-tokens", metavar="N", type=int, help="at most so many generated tokens")
    @argument("--thinking", metavar="N", type=int, help="thinking budget in tokens, or the nearest reasoning effort")
    @argument("--set", action="append", metavar="FIELD=VALUE", help="any other field of the request; VALUE may be JSON")
    @argument("--no-stream", action="store_const", const=True, help="ask for the reply as a whole")
    @argument("--into", metavar="NAME", help="the variable that gets the reply, the partial one of a failure too")
    @argument("--using", metavar="NAME", help="the variable that holds the client; `client` by default")
    @argument("--raw", action="store_const", const=True, help="leave {name} as it is")
    @argument("-h", "--help", action="store_const", const=True, help="show this, and ask nothing")
    @argument("prompt", nargs="?", help="the rest of the line or the cell; {name} is replaced by that variable")
    @line_cell_magic
    def fam(self, line: str, cell: str | None = None) -> Reply | None:
        """Ask the API, streaming the reply under the cell."""
        options, prompt = self._parse(line)
        if options.get("help") or (cell is None and not prompt):
            # IPython's help begins with a mark for Sphinx.
            help_text = FamMagics.fam.parser.format_help().removeprefix("::").strip()
            print(f"{help_text}\n{_EXAMPLES.rstrip()}")  # noqa: T201 - a magic's output
            return None
        if cell is not None and prompt:
            raise UsageError(f"%%fam: after the options there is {prompt[:40]!r}; the prompt belongs into the cell")
        prompt = prompt if cell is None else cell.strip()
        if not prompt:
            raise UsageError("%%fam: the cell is empty; write the prompt below the line of options")
        return self._ask(prompt, options)

    def _parse(self, line: str) -> tuple[dict[str, Any], str]:
        """Return the options of a line, and what follows them; raises UsageError."""
        try:
            arguments, rest = split_line(line)
        except ValueError as error:
            raise UsageError(f"%fam: {error} in {line.strip()[:60]!r}") from None
        parsed, unknown = FamMagics.fam.parser.parse_known_args(arguments)
        if unknown:
            option = unknown[0].partition("=")[0]
            raise UsageError(f"%fam: there is no option {option}; a field of the request is --set FIELD=VALUE")
        options = {name: value for name, value in vars(parsed).items() if value is not None}
        if "set" in options:
            options["set"] = dict(map(parse_assignment, options["set"]))
        return options, rest

    def _ask(self, prompt: str, options: dict[str, Any]) -> Reply:
        """Ask, and keep the reply in the variable wanted; a failure becomes a UsageError, one line in IPython."""
        name, fields = options.get("into"), {**options.get("set", {})}
        fields |= {option: value for option, value in options.items() if option not in _NOT_FIELDS}
        if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
            raise UsageError(f"--into: {name!r} is no name for a variable")
        if not options.get("raw"):
            # Not str.format: a prompt may hold JSON or code, whose braces mean nothing here.
            variables = self._shell.user_ns
            prompt = _VARIABLE.sub(lambda match: str(variables.get(match[1], match[0])), prompt)
        client = self._find_client(options.get("using"))
        try:
            reply = client.ask(prompt, stream=not options.get("no_stream"), **fields)
        except (FamnbError, Interrupted) as error:
            if name and error.reply is not None:
                self._shell.user_ns[name] = error.reply
            if isinstance(error, Interrupted):
                raise
            raise UsageError(f"{type(error).__name__}: {' '.join(str(error).split())}") from None
        if name:
            self._shell.user_ns[name] = reply
        if client.engine.viewer is None:
            print(reply.text)  # noqa: T201 - a terminal has no live view
        return reply

    def _find_client(self, name: str | None) -> Client:
        """Return the client that a variable holds, else one that is connected now and kept."""
        value = self._shell.user_ns.get(name or "client")
        if isinstance(value, Client):
            return value
        if name is not None:
            raise UsageError(f"--using: {name!r} is no famnb.Client; make one with {name} = famnb.connect()")
        if self._client is None:
            self._client = connect()
        return self._client

    @context_matcher()
    def complete(self, context: CompletionContext) -> SimpleMatcherResult:
        """Complete a line of `%fam`: options, endpoints, models, fields, clients."""
        line = context.text_until_cursor
        magic = re.match(r"\s*%%?fam\s", line)
        if magic is None:
            return {"completions": []}
        *earlier, word = ["", *line[magic.end() :].split(" ")]
        matches = [candidate for candidate in self._candidates(earlier, word) if candidate.startswith(word)]
        return {
            "completions": [SimpleCompletion(text=match, type="fam") for match in matches],
            "matched_fragment": word,
            # Python names would be no help among options; without a match they may be what is meant.
            "suppress": bool(matches),
        }

    def _candidates(self, earlier: list[str], word: str) -> Iterator[str]:
        """Yield what may stand at the cursor, after the words before it."""
        endpoint = next((value for option, value in itertools.pairwise(earlier) if option in _ENDPOINT), "")
        endpoints = [ENDPOINTS[endpoint]] if endpoint in ENDPOINTS else list(ENDPOINTS.values())
        match earlier[-1]:
            case "-e" | "--endpoint":
                yield from ENDPOINTS
            case "-m" | "--model":
                yield from dict.fromkeys(model for endpoint in endpoints for model in endpoint.models)
            case "--set":
                names = {name for endpoint in endpoints for name in endpoint.request.model_fields}
                yield from (f"{name}=" for name in FIELDS if name in names)
            case "--using":
                yield from (name for name, value in self._shell.user_ns.items() if isinstance(value, Client))
            case _ if word.startswith("-"):
                # argparse has a private list alone; IPython makes its parser of these decorators, the last first.
                options = [option for option in reversed(FamMagics.fam.decorators) if isinstance(option, argument)]
                yield from (flag for option in options for flag in option.args if flag.startswith("--"))
