"""llama.cpp's own server with one model, in a child process that ends with this one.

    this process ── options, key ──► child: xllamacpp loads the model, and answers on loopback whoever has the key
                 ◄── {"url": …} ────
                 ── standard input, open for as long as this process lives

llama.cpp is C++: if it crashes, neither the service nor a notebook ends. `start_engine` is this process's half,
`main` the child's.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
import threading
from pathlib import Path

import msgspec
import psutil

from famnb.errors import ConnectError, InvalidRequest
from famnb.formatting import format_size
from famnb.service.engines.gguf import read_header
from famnb.service.local_models import check_engine
from famnb.service.process import ChildProcess

KEY_VARIABLE = "FAMNB_ENGINE_KEY"
"""The child's variable with its key, which is no argument: every user of a machine can list those."""
# A call in a notebook is rarely longer, and memory for it is reserved when the engine starts.
USUAL_CONTEXT = 8192
"""How many tokens a call may have, prompt and answer together, if the model can read as many."""
# Reading 40 GB from a disk takes minutes.
START_TIMEOUT_S = 600.0
"""How many seconds loading may take."""


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How an engine runs a model."""

    name: str
    """By which callers ask for the model."""
    path: str
    """Its GGUF file."""
    context: int
    """Tokens of one call, prompt and answer together."""
    threads: int
    parallel: int
    """Calls that are answered at once; others wait."""
    memory: int
    """Bytes that it will take, as estimated."""
    has_tools: bool
    """Whether its template of a conversation has a place for tools."""


def plan_engine(
    name: str, path: Path, *, context: int | None = None, threads: int | None = None, parallel: int = 2
) -> EngineOptions:
    """Return the options for a model, None for what fits it and this machine.

    Raises InvalidRequest if the engine is not installed, the file is no model, or the model cannot read that many
    tokens.
    """
    check_engine()
    header = read_header(path)
    trained = header.context or USUAL_CONTEXT
    if context is not None and context > trained:
        raise InvalidRequest(f"ctx: {name} reads at most {trained:,} tokens, got {context:,}")
    context = context or min(trained, USUAL_CONTEXT)
    return EngineOptions(
        name=name,
        path=str(path),
        context=context,
        # All but one, which the service and the notebook need; llama.cpp waits for its slowest thread.
        threads=threads or max(1, _count_cores() - 1),
        parallel=parallel,
        memory=header.estimate_memory(context * parallel),
        # A model may have a template of its own for tools.
        has_tools=any(
            "tools" in str(text) for name, text in header.fields.items() if name.startswith("tokenizer.chat_template")
        ),
    )


def check_memory(plans: list[EngineOptions], available: int | None = None) -> str:
    """Return what engines will take of the memory, in a sentence; `available` is in bytes, None for what is free now.

    Raises InvalidRequest if there is not enough.
    """
    available = psutil.virtual_memory().available if available is None else available
    needed = sum(plan.memory for plan in plans)
    sizes = ", ".join(f"{plan.name} ({plan.parallel} x {plan.context:,} tokens)" for plan in plans)
    if needed > available:
        raise InvalidRequest(
            f"{sizes} would take about {format_size(needed)} of memory, and {format_size(available)} are free: close "
            "other programs, or choose a smaller model, or less with --ctx or --parallel"
        )
    return f"{sizes}: about {format_size(needed)} of memory, of {format_size(available)} that are free"


def start_engine(options: EngineOptions, *, start_timeout: float = START_TIMEOUT_S) -> tuple[ChildProcess, str, str]:
    """Start an engine; return its process, its address and its key. Raises ConnectError if the model does not load."""
    key = secrets.token_urlsafe(24)
    child = ChildProcess(
        [sys.executable, "-m", "famnb.service.engines.llama_cpp", msgspec.json.encode(options).decode()],
        {KEY_VARIABLE: key},
        title=f"the engine of {options.name}",
        start_timeout=start_timeout,
    )
    if "error" in child.message:
        # llama.cpp says why only among its log's lines.
        lines = re.findall(r"^[\d.]+ E \w+: (.+)$", child.read_log(), re.MULTILINE)
        child.close()
        reason = lines[0] if lines else child.message["error"]
        raise ConnectError(
            f"{options.path} did not load: {reason}; it may be broken, or of a newer kind than this engine"
        )
    return child, child.message["url"], key


def _count_cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def main() -> None:
    """Load the model that the argument describes, and serve it until the end of standard input."""
    options = msgspec.json.decode(sys.argv[1], type=EngineOptions)
    threading.Thread(target=_exit_at_end_of_stdin, daemon=True).start()
    import xllamacpp  # the optional engine, at its one door

    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = options.path, {options.name}
    params.api_keys = [os.getenv(KEY_VARIABLE, "")]
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel = options.context * options.parallel, options.parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    # By default up to 8 GB for prompts of the past, and pages for people.
    params.cache_ram_mib, params.ui, params.offline = 0, False, True
    try:
        server = xllamacpp.Server(params)
        message = {"url": server.listening_address}
    except RuntimeError as error:
        message = {"error": str(error)}
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.flush()
    threading.Event().wait()


def _exit_at_end_of_stdin() -> None:
    """End this process, also in the middle of an answer, once the one that started it has closed its input or died."""
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
