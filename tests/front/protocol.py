"""Writes famnb/widget/front/protocol.d.ts: the views and intents of all tools, from their types in Python.

Run `python -m tests.front.protocol` after a view or an intent has changed.
"""

import importlib
import pkgutil
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import famnb.widget
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.live.reply_pane import Elapsed, Markdown
from famnb.widget.runtime.front_end import FRONT
from famnb.widget.runtime.tool import BaseTool
from famnb.widget.runtime.view import Growing, View

TARGET = FRONT / "protocol.d.ts"
HEAD = """// Written by `python -m tests.front.protocol` from the views and intents in Python: do not edit.
import type { Growing, MarkdownValue } from "./runtime/growing.js";

/** HTML that Python has made and cleaned. */
export type SafeHtml = string & { readonly safe: unique symbol };
"""
NAMES: dict[Any, str] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    bytes: "DataView",
    type(None): "null",
    Any: "any",
    SafeHtml: "SafeHtml",
    Markdown: "Growing<MarkdownValue>",
    Elapsed: "Growing<number>",
    Growing: "Growing<any>",
}

for module in pkgutil.walk_packages(famnb.widget.__path__, "famnb.widget."):
    importlib.import_module(module.name)


def write_protocol() -> str:
    """Return the text of protocol.d.ts."""
    views = sorted(subclasses(View), key=lambda view: view.__name__)
    tools = sorted((tool for tool in subclasses(BaseTool) if "entry" in vars(tool)), key=lambda tool: tool.__name__)
    return "\n".join([HEAD, *map(write_view, views), *map(write_intents, tools)])


def subclasses(kind: type) -> list[type]:
    """Return the subclasses of a class in the package, and theirs."""
    found = [sub for sub in kind.__subclasses__() if sub.__module__.startswith("famnb.")]
    return [*found, *(sub for base in found for sub in subclasses(base))]


def write_view(view: Any) -> str:
    hints = get_type_hints(view)
    names = zip(view.__struct_fields__, view.__struct_encode_fields__, strict=True)
    fields = "".join(f"  {wire}: {write_type(hints[name])};\n" for name, wire in names)
    return f"export interface {view.__name__} {{\n{fields}}}\n"


def write_intents(tool: Any) -> str:
    lines = []
    for name, intent in sorted(tool.intents.items()):
        struct = intent.arguments
        names = zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
        optional = set(struct.__struct_fields__[len(struct.__struct_fields__) - len(struct.__struct_defaults__) :])
        required = {field for field in struct.__struct_fields__ if field not in optional}
        fields = [f"{wire}{'' if n in required else '?'}: {write_type(intent.hints[n])}" for n, wire in names]
        lines.append(f"  {name}: {{ {'; '.join(fields)} }};\n" if fields else f"  {name}: {{}};\n")
    return f"export interface {tool.__name__}Intents {{\n{''.join(lines)}}}\n"


def write_type(hint: Any) -> str:
    """Return a type of Python in TypeScript."""
    if hint in NAMES:
        return NAMES[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and issubclass(hint, View):
        return hint.__name__
    if origin is Literal:
        return " | ".join(f'"{value}"' if isinstance(value, str) else str(value).lower() for value in arguments)
    if origin in (Union, types.UnionType):
        return " | ".join(write_type(argument) for argument in arguments)
    if origin in (tuple, list) and (len(arguments) == 1 or arguments[1] is Ellipsis):
        return f"({write_type(arguments[0])})[]"
    if origin is tuple:
        return f"[{', '.join(map(write_type, arguments))}]"
    if origin is dict:
        return f"{{ [name: string]: {write_type(arguments[1])} }}"
    raise TypeError(f"{hint!r} has no type on the page")


if __name__ == "__main__":
    TARGET.write_text(write_protocol(), encoding="utf-8")
