"""llama.cpp's own server with one model, in a child process that ends with this one.

    this process ── options ──► child: xllamacpp loads the model, and answers on loopback whoever has its key
                 ◄── {"url": …, "key": …, "has_tools": …} ────
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
from typing import Any

import httpx
import msgspec

from famnb.errors import ConnectError
from famnb.service.process import ChildProcess

# A call in a notebook is rarely longer, and memory for it is reserved when the engine starts.
USUAL_CONTEXT = 8192
"""How many tokens a call may have, prompt and answer together; llama.cpp takes fewer if the model reads fewer."""
# Reading 40 GB from a disk takes minutes.
_START_TIMEOUT_S = 600.0
"""How many seconds loading may take."""


class EngineOptions(msgspec.Struct, frozen=True):
    """How an engine runs a model."""

    name: str
    """By which callers ask for the model."""
    path: str
    """Its GGUF file."""
    context: int | None = None
    """Tokens of one call, prompt and answer together; None for `USUAL_CONTEXT`."""
    threads: int | None = None
    """None for all cores but one, which the service and the notebook need; llama.cpp waits for its slowest thread."""
    parallel: int = 2
    """Calls that are answered at once; others wait."""


def start_engine(options: EngineOptions) -> ChildProcess:
    """Start an engine; its message has `url`, `key` and `has_tools`. Raises ConnectError if the model does not load."""
    child = ChildProcess(
        [sys.executable, "-m", "famnb.service.engines.llama_cpp", msgspec.json.encode(options).decode()],
        {},
        title=f"the engine of {options.name}",
        start_timeout=_START_TIMEOUT_S,
    )
    if "error" in child.message:
        # llama.cpp says why only among its log's lines.
        lines = re.findall(r"^[\d.]+ E \w+: (.+)$", child.read_log(), re.MULTILINE)
        child.close()
        reason = lines[0] if lines else child.message["error"]
        raise ConnectError(
            f"{options.path} did not load: {reason}; it may be broken, no GGUF file, or newer than this engine"
        )
    return child


def main() -> None:
    """Load the model that the argument describes, and serve it until the end of standard input."""
    options = msgspec.json.decode(sys.argv[1], type=EngineOptions)
    threading.Thread(target=_exit_at_end_of_stdin, daemon=True).start()
    import xllamacpp  # the optional engine, at its one door

    key = secrets.token_urlsafe(24)
    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = options.path, {options.name}
    params.api_keys = [key]
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel = (options.context or USUAL_CONTEXT) * options.parallel, options.parallel
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads or max(1, cores - 1)
    # By default up to 8 GB for prompts of the past, and pages for people.
    params.cache_ram_mib, params.ui, params.offline = 0, False, True
    message: dict[str, Any]
    try:
        server = xllamacpp.Server(params)
    except (RuntimeError, OverflowError, MemoryError) as error:
        message = {"error": str(error)}
    else:
        url = server.listening_address
        headers = {"authorization": f"Bearer {key}"}
        properties = httpx.get(f"{url}/props", headers=headers, timeout=60, trust_env=False).json()
        # A template of a conversation need not have a place for tools; some models have another one for those.
        templates = (properties.get(name) for name in ("chat_template", "chat_template_tool_use"))
        message = {"url": url, "key": key, "has_tools": any("tools" in str(template) for template in templates)}
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
