"""`famnb serve`: runs the local service in the foreground.

It answers on every endpoint, whole and streamed, byte for byte as the API's document shows. Answers are simulated:
deterministic for the same model, request and --seed, paced like a real model (--time-scale 0 does not wait). Every call
to it is marked `simulated` in the ledger, and figures of such calls say so.

To check a service: start it, and tell `famnb check` where it is.

  famnb serve --port 8765 --key local-key &
  FAM_API_KEY=local-key FAM_BASE_URL=http://127.0.0.1:8765 famnb check

SDKs          openai with base_url=URL/v1 (chat completions, responses) or URL/v1/web (web chat), anthropic with
              base_url=URL. --compat understands what they send beyond the document: tools, stop, other names of the
              cap, /v1/models, any model; without it, ignored fields are named in the header x-famnb-ignored.
two addresses --alt-port N serves all endpoints but chat at an address of their own, as the document has it;
              an endpoint at the wrong one is 404. Without it both are one.
pace          Time to first token and gaps are log-normal per model; hidden reasoning delays the first token, shown
              thinking the answer. The true values, in seconds: famnb.service.engines.latency_model.latency_profile(
              "fam-2-5-pro", "high").ttft.quantile(0.95)..
profile       --profile openresponses adds to the responses endpoint the fields and events of that specification; its
              compliance suite passes but for what the document does not have there (tools, compaction, WebSockets).
large bodies  Read beside the streams that run, which go on meanwhile.
store         --store FILE keeps responses in an SQLite file, the latest 10,000 of a key, so that GET, DELETE and
              previous_response_id work after a restart. A response is in the file before its last byte goes out:
              kill -9 loses none that was acknowledged, a power cut may lose the latest. One that cannot be kept
              fails. One service a file; keys are kept as hashes.
limits        --requests-per-minute, --burst and --concurrency hold for each key; beyond them a call is 429, and an
              allowance's Retry-After is as long as it takes. Bodies have 20 MB (--body-limit) and 30 s
              (--upload-timeout). The service is one process; in front of several engines belongs a gateway made for
              it, such as the LiteLLM proxy, Envoy AI Gateway or nginx.
keys          --key, repeatable, or FAMNB_SERVICE_KEY in the environment, several with spaces between.
faults        The header x-famnb-fault of a request, or --fault for all without one, with any of status=429, delay=2
              (seconds), error=3, cut=3, garbage=3, stall=3 (after 3 deltas: a failure, a broken connection, an event
              that is not JSON, silence) and drip (byte by byte), joined by commas. Beyond loopback and in front of an
              engine the header is ignored, and named in x-famnb-ignored, unless --allow-faults is given.
watching      /metrics has requests, tokens, times to first token, what is in flight and the engine's state, as
              Prometheus reads them, with a key.
container     famnb/service/container has a Containerfile, and a compose.yaml of famnb, llama.cpp and Prometheus.
the end       At Ctrl-C or SIGTERM open streams end with their endpoint's failure event and whole calls with a 500,
              within about a second; new calls are refused. A response that was running is stored as failed.

In front of an engine of your own: any server with POST /v1/chat/completions answers in place of the simulation, on
every endpoint, with thinking, tools, JSON, conversations and exact errors. Start the engine, then famnb in front of it.

  # llama.cpp
  llama-server -m model.gguf --jinja --port 8080 --api-key "$ENGINE_KEY"
  famnb serve --upstream http://127.0.0.1:8080 --upstream-key ENGINE_KEY

  # Ollama
  ollama serve &                        # unless it runs already, as it does once installed as a service
  ollama pull qwen3:8b
  famnb serve --upstream http://127.0.0.1:11434 --upstream-model qwen3:8b

  # vLLM on one machine
  vllm serve Qwen/Qwen3-8B --port 8000 --api-key "$ENGINE_KEY" --tensor-parallel-size 2 \
      --reasoning-parser qwen3 --enable-auto-tool-choice --tool-call-parser hermes
  famnb serve --upstream http://127.0.0.1:8000 --upstream-key ENGINE_KEY

  # vLLM on many machines: 2 with 8 GPUs each, joined by Ray, which vLLM does not bring along: pip install ray on each
  ray start --head --port 6379          # on the first machine
  ray start --address FIRST:6379        # on each other machine
  vllm serve MODEL --tensor-parallel-size 8 --pipeline-parallel-size 2 --distributed-executor-backend ray  # the first
  famnb serve --upstream http://FIRST:8000

  # llama.cpp without a server of its own: pip install "famnb[local]", then a known model, or any GGUF file
  famnb model get smollm2
  famnb serve --model smollm2 --model other.gguf

SGLang, Ray Serve LLM, transformers serve and hosted services work the same way.

models        Callers go on using this API's model ids. --upstream-model M is the engine's model for all of them,
              --upstream-model fam-2-5-pro=M (repeatable) for one. Without it, the id itself if the engine lists it,
              else its only model.
key           --upstream-key names the environment variable that has it. Neither key nor address reaches a caller, a
              log or /health; /health reports up, unauthorized or down.
sent          System text (as role system), turns, images by address, tools, the tool choice, JSON formats, sampling,
              the token cap. An effort becomes reasoning_effort and chat_template_kwargs.enable_thinking; a thinking
              budget becomes the nearest effort. An optional field that the engine refuses is left out from then on,
              and x-famnb-ignored names it, as it does all else that no engine gets.
received      Thinking (reasoning_content, reasoning, <think>) on messages when it was asked for. A reply ends as
              complete only with a finish reason; an engine that breaks off or drops a stream ends it with the
              endpoint's failure event. Usage that the engine does not report is null; in a messages stream, where the
              document wants a number, 0.
errors        The engine's 400, 413 and 422 become 400 with its own message; 429 keeps its Retry-After; any other
              error, its 401 included, becomes 500.
not changed   Prompts are not cut to the engine's context, images are not fetched, and whether JSON keeps its schema or
              a required tool is called depends on the engine.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
from typing import Any

from famnb.cli import add_model, integer_from
from famnb.service.process import KEY_VARIABLE
from famnb.service.server import run as run_service
from famnb.service.settings import PROFILES, Options


def declare(parser: argparse.ArgumentParser) -> None:
    """The local service; its first line on standard output is one JSON object with url, key, pid and alt_url."""
    usual = Options()

    def add(flag: str, help: str, **settings: Any) -> None:
        settings.setdefault("default", getattr(usual, flag.removeprefix("--").replace("-", "_")))
        parser.add_argument(flag, help=help, **settings)

    switch: dict[str, Any] = {"action": "store_true"}
    repeatable: dict[str, Any] = {"action": "append", "default": []}
    count: dict[str, Any] = {"type": integer_from(1), "metavar": "N"}
    add("--host", "address to listen on (default: %(default)s)")
    add("--port", "port to listen on (default: a free one)", type=int)
    alt_help = "serve all endpoints but chat at this port, 0 for a free one (default: all on one port)"
    add("--alt-port", alt_help, type=int, metavar="N")
    key_help = f"an API key to accept, repeatable (default: those in {KEY_VARIABLE}, else a random one)"
    add("--key", key_help, action="append", metavar="K")
    add("--seed", "another seed gives other answers (default: 0)", type=int)
    add("--time-scale", "1 is lifelike, 0 does not wait (default: 1)", type=float)
    add("--upstream", "a server with /v1/chat/completions that answers", metavar="URL")
    add("--upstream-key", "the environment variable that has its key", metavar="ENV")
    model_help = "its name of the model: M for all, or OURS=THEIRS, repeatable (default: the only one it lists)"
    add("--upstream-model", model_help, metavar="M", **repeatable)
    add_model(parser, "a model on this machine that answers")
    add("--ctx", "tokens of a call of --model (default: 8192, or all it reads)", **count)
    add("--threads", "threads of each --model (default: all cores but one)", **count)
    add("--parallel", "calls that each --model answers at once (default: %(default)s)", **count)
    profile_help = (
        "answer on the responses endpoint with all that this specification wants (default: the document alone)"
    )
    add("--profile", profile_help, choices=[name for name in PROFILES if name])
    add("--store", "keep responses in a file (default: in memory)", metavar="FILE")
    compat_help = "understand the vendors' own fields and paths: tools everywhere, stop, /v1/models, any model"
    add("--compat", f"{compat_help} (default: with an upstream)", action=argparse.BooleanOptionalAction)
    add("--strict", "answer 400 to unknown fields instead of ignoring them", **switch)
    add("--fault", "a fault on every call, such as status=429, delay=2, error=3, cut=3")
    fault_help = "obey the header x-famnb-fault beyond loopback and with an upstream too (default: ignore it there)"
    add("--allow-faults", fault_help, **switch)
    add("--requests-per-minute", "per key (default: no limit)", type=float, metavar="N")
    add("--burst", "of these, at once (default: all)", type=int, metavar="N")
    add("--concurrency", "running calls per key (default: no limit)", type=int, metavar="N")
    add("--body-limit", "answer 413 to a larger body (default: %(default)s)", type=integer_from(1), metavar="BYTES")
    add("--upload-timeout", "answer 408 to a body that takes longer (default: %(default)s s)", type=float, metavar="S")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    fields = {field.name: getattr(options, field.name) for field in dataclasses.fields(Options)}
    if not options.key:
        fields["key"] = os.getenv(KEY_VARIABLE, "").split() or None
    return run_service(**fields)
