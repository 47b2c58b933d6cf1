"""Recorded replies of vendors, each read as the vendor's own SDK reads it.

The recordings are no part of the project: a file of them beside its folder, `../shared/recorded-replies.jsonl.xz`, is
read where there is one. A line holds the body as it came and, as `sdk`, what the vendor's SDK made of it.
"""

import json
import lzma
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from famnb.client.response_reader import ResponseReader
from famnb.errors import FamnbError, StreamError
from famnb.profiles import find_endpoints
from famnb.reply import Reply
from famnb.wire import errors

pytestmark = pytest.mark.conformance

CORPUS = Path(__file__).parents[3] / "shared" / "recorded-replies.jsonl.xz"

_TAGS = "the SDK leaves `<think>` in the text; here it is thinking"
_CACHE = "the vendor has the count beside the prompt's details, where the SDK does not look"
BETTER: dict[tuple[str, str], str] = {
    ("groq", "text"): _TAGS,
    ("groq", "thinking"): _TAGS,
    ("huggingface", "text"): _TAGS,
    ("huggingface", "thinking"): _TAGS,
    ("huggingface", "usage cached"): _CACHE,
    ("mistral", "usage cached"): _CACHE,
    ("moonshot", "usage cached"): _CACHE,
    ("anthropic", "signatures"): "redacted thinking is kept in the place of the signature, and goes back as `data`",
    ("anthropic", "calls"): "a message that begins anew within its stream: the calls of both, not one pieced together",
    ("anthropic", "id"): "the same message: the id is that of the answer that was finished",
    ("gemini", "usage output"): "Google counts thoughts in the total alone; they are billed as output",
    ("gemini", "usage reasoning"): "the same thoughts",
    ("compatible", "usage output"): "xAI counts reasoning beside the completion; its total shows it",
    ("compatible", "usage cost"): "xAI reports what the call costs, in ticks of 1e-10 USD",
    ("openrouter", "usage cost"): "with a key of one's own at the vendor, the broker's fee is not what the call costs",
    ("openrouter", "error message"): "the cause that the vendor behind the router gave is said, too",
    ("snowflake", "calls"): "a function call with empty name and arguments is not a call",
    ("perplexity", "annotations"): "the sources beside the choices are citations of the answer",
    ("openai", "id"): "the reply so far is kept when the stream ends with an error",
    ("openai", "model"): "the same",
    ("azure", "failure"): "an error in a body of status 200 is raised; the SDK returns an empty reply",
    ("demo", "failure"): "a body that is not JSON is raised; the SDK returns an empty reply",
}
"""The differences in which the reply says more than the SDK: vendor, what differs, and the reason."""

_COUNTS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "total": "total_tokens",
    "cached": "cached_tokens",
    "cache_write": "cache_write_tokens",
    "reasoning": "reasoning_tokens",
    "cost": "cost_usd",
}


def test_each_recorded_reply_is_read_as_the_vendors_sdk_reads_it():
    if not CORPUS.exists():
        pytest.skip(f"no recordings at {CORPUS}")
    found: Counter[tuple[str, str]] = Counter()
    unexplained: list[str] = []
    number = 0
    with lzma.open(CORPUS, "rt") as lines:
        for number, line in enumerate(lines, start=1):  # noqa: B007 - counted
            recording = json.loads(line)
            for name, ours, theirs in differences(recording):
                key = recording["vendor"], name
                found[key] += 1
                if key not in BETTER:
                    unexplained.append(f"{recording['id']} {key}: {ours!r:.300}, not {theirs!r:.300}")
    print(f"{number} replies, {len(unexplained)} unexplained differences; those where ours is better:")
    for (vendor, name), count in sorted(found.items()):
        print(f"  {count:3} {vendor} {name}: {BETTER.get((vendor, name), '?')}")
    assert not unexplained, "\n".join(unexplained)
    assert set(found) == set(BETTER), "a difference of the table is gone"


def differences(recording: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield what our reading and the SDK's differ in: a name, ours and theirs."""
    body, sdk = recording["body"].encode("latin-1"), recording["sdk"]
    if recording["status"] != 200:
        error = errors.read(recording["status"], recording["headers"], body)
        name, message, fields = sdk["error"]
        yield from unequal("error", type(error).__name__, name)
        yield from unequal("error message", str(error.args[0]) in message, True)
        for field in ("code", "type", "param"):
            yield from unequal(f"error {field}", str(getattr(error, field)), fields[field])
        return
    reply, failure = read(recording, body)
    if "error" in sdk:
        yield from unequal("failure", isinstance(failure, StreamError), True)
    elif failure is not None:
        yield "failure", failure, None
    expected = sdk["reply"]
    usage = expected.get("usage") or {}
    ours: dict[str, Any] = {
        "text": reply.text,
        "thinking": reply.thinking,
        "refusal": "".join(block.text for block in reply.blocks if block.kind == "refusal"),
        "calls": [[call.id, call.name, call.text] for call in reply.tool_calls],
        "stop": reply.stop_reason,
        "id": reply.id,
        "model": reply.model,
        "annotations": sum(len(block.entries) for block in reply.blocks if block.kind in ("annotations", "citations")),
        "logprobs": sum(len(block.entries) for block in reply.blocks if block.kind == "logprobs"),
        "signatures": [block.signature for block in reply.blocks if block.signature] or None,
        "usage": {name: getattr(reply.usage, field) for name, field in _COUNTS.items() if name in usage},
    }
    for name, value in ours.items():
        wanted = expected[name]
        if name == "usage":
            for count, figure in value.items():
                # The SDKs add up no total where the vendor sends none.
                if count == "total" and usage[count] is None:
                    continue
                yield from unequal(f"usage {count}", figure, usage[count])
        elif name == "calls":
            yield from unequal(name, [*map(loads_call, value)], [*map(loads_call, wanted)])
        else:
            yield from unequal(name, value or None, wanted or None)


def loads_call(call: list[str]) -> list[Any]:
    """Return a call with its arguments decoded, since the SDKs write objects as they like."""
    try:
        return [*call[:2], json.loads(call[2] or "{}")]
    except ValueError:
        return call


def unequal(name: str, ours: Any, theirs: Any) -> Iterator[tuple[str, Any, Any]]:
    if ours != theirs:
        yield name, ours, theirs


def read(recording: dict[str, Any], body: bytes) -> tuple[Reply, FamnbError | None]:
    """Return the reply that a body is, as a client would have read it, and why it would have raised an error."""
    endpoints = find_endpoints(recording["profile"])
    endpoint = endpoints.get(recording["endpoint"]) or find_endpoints("open")[recording["endpoint"]]
    reader = ResponseReader(endpoint, streamed=recording["streamed"])
    failure = None
    try:
        reader.feed(body, 1)
        reader.end(2)
    except FamnbError as error:
        failure = error
    return reader.reply(), failure
