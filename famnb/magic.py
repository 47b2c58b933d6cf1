"""`%fam` and `%%fam`: asking from a cell without Python; asking itself, and showing the reply, are the client's.

%%fam [options]      the cell is the prompt          %fam [options] prompt     the rest of the line is
%fam options         become defaults                 %fam                      shows defaults and help
"""

from __future__ import annotations

import itertools
import keyword
import re
from collections.abc import Iterator
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments

from famnb import magicline
from famnb.endpoints import ENDPOINTS
from famnb.errors import FamnbError, Interrupted
from famnb.reply import Reply
from famnb.workbench import Client, connect

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
    lines[:] = [*(each for each in lines if each.__qualname__ != magicline.Question.__qualname__), magicline.Question]


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
            arguments, rest = magicline.split(line)
        except ValueError as error:
            raise UsageError(f"%fam: {error} in {line.strip()[:60]!r}") from None
        parsed, unknown = FamMagics.fam.parser.parse_known_args(arguments)
        if unknown:
            raise UsageError(f"%fam: {magicline.unknown(unknown[0], _options())}")
        given = {name: value for name, value in vars(parsed).items() if value is not None}
        if "set" in given:
            given["set"] = dict(map(magicline.assigned, given["set"]))
        return given, rest

    def _settle(self, given: dict[str, Any]) -> None:
        """Take options as defaults, and show what holds; with none given, the help too."""
        alone = not given
        if given.pop("reset", False):
            self._defaults = {}
        fields = {**self._defaults.get("set", {}), **given.pop("set", {})}
        self._defaults = {**self._defaults, **given, **({"set": fields} if fields else {})}
        client = self._found(self._defaults.get("using"))
        shown = " ".join(magicline.written(self._defaults)) or "none: the model fam-2-5-pro on messages"
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
            prompt = magicline.filled(prompt, self._shell.user_ns)
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
                yield from (f"{name}=" for name in magicline.FIELDS if name in here)
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
