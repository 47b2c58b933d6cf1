"""`famnb model list | get | remove | path`: models that run on this machine, without a key and without a network.

`get` fetches a model by pip, after asking, and keeps its weights in your data folder, or in FAMNB_MODELS. Then

  famnb lab --model smollm2             # JupyterLab, with the model in place of the simulation
  famnb serve --model smollm2           # every endpoint; --model FILE.gguf for any model in llama.cpp's format
  famnb.connect("local")                # in a notebook

The engine is llama.cpp, a few megabytes more: pip install "famnb[local]".
"""

from __future__ import annotations

import argparse
import sys

from famnb.formatting import format_size, format_table
from famnb.service.local_models import MODELS, model_path, remove_model
from famnb.service.model_download import get_model


def declare(parser: argparse.ArgumentParser) -> None:
    """Models that run on this machine; list, get, remove and path."""
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    show = commands.add_parser("list", help="the models that pip can fetch, and which are here")
    show.set_defaults(run=_list)
    get = commands.add_parser("get", help="fetch a model, after asking")
    get.add_argument("--yes", action="store_true", help="do not ask")
    get.set_defaults(run=_get)
    remove = commands.add_parser("remove", help="delete a model's weights")
    remove.set_defaults(run=_remove)
    path = commands.add_parser("path", help="print where a model's weights are, or would be")
    path.set_defaults(run=_print_path)
    for command in (get, remove, path):
        command.add_argument("name", choices=list(MODELS), metavar="NAME", help=f"one of {', '.join(MODELS)}")


def _list(_options: argparse.Namespace) -> int:
    rows = []
    for model in MODELS.values():
        path = model_path(model.name)
        texts = (model.name, model.title, format_size(model.wheel_size), model.licence, model.source)
        rows.append((*texts, str(path) if path.exists() else "not fetched", model.sha256[:12]))
    print(format_table(("name", "model", "to fetch", "licence", "by", "here", "SHA-256"), rows, left=7))
    return 0


def _get(options: argparse.Namespace) -> int:
    if not options.yes and not sys.stdin.isatty():
        print(f"famnb: nobody can be asked here; run: famnb model get {options.name} --yes", file=sys.stderr)
        return 2

    def confirm(question: str) -> bool:
        return options.yes or input(f"{question} [y/N] ").strip().lower() in ("y", "yes")

    print(f"{options.name} is in {get_model(options.name, confirm=confirm)}")
    return 0


def _remove(options: argparse.Namespace) -> int:
    print(f"{options.name} removed, {format_size(remove_model(options.name))} free again")
    return 0


def _print_path(options: argparse.Namespace) -> int:
    print(model_path(options.name))
    return 0
