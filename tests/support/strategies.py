"""What hypothesis draws: streams of events that a dialect can carry, their bytes cut anywhere, JSON of any shape."""

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from famnb.endpoints import ENDPOINTS
from famnb.events import Address, Closed, Delta, Done, Ended, Event, Fault, Opened, Started, Usage
from famnb.request import ChatRequest, MessagesRequest, Request, ResponsesRequest, WebChatRequest
from famnb.request.types import MINI_OUTPUT_TOKENS, PRO_MODELS
from famnb.wire import chat, lenient_json, messages, responses, sse

DIALECTS = (chat, responses, messages)
NAMES = {chat: "chat", responses: "responses", messages: "messages"}

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
"""Any text: U+2028, quotes, control characters and characters outside the basic plane among it."""
words = st.text("abcdefghijklmnopqrstuvwxyz_-0123456789", min_size=1, max_size=12).filter(lambda word: word != "error")
counts = st.integers(0, 10_000)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
"""JSON of any shape."""
arguments = st.dictionaries(words, texts, min_size=1, max_size=3).map(lambda value: lenient_json.encode(value).decode())
"""A tool call's arguments as compact JSON."""

_FINISHES = {
    chat: {"stop": "stop", "length": "length", "content_filter": "content_filter", "odd": "odd"},
    responses: {"stop": "completed", "length": "max_output_tokens", "content_filter": "content_filter"},
    messages: {"stop": "end_turn", "length": "max_tokens", "stop_sequence": "stop_sequence", "odd": "odd"},
}
"""For each dialect the reasons it has, with its own words for them."""
_CALLED = {chat: "tool_calls", responses: "completed", messages: "tool_use"}


@st.composite
def pieces(draw: DrawFn, text: str) -> list[str]:
    """The text cut into pieces, none of them empty."""
    cuts = sorted(draw(st.sets(st.integers(1, max(len(text) - 1, 1)), max_size=4)))
    parts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return [part for part in parts if part]


@st.composite
def streams(draw: DrawFn, dialect: ModuleType, *, whole: bool = False) -> list[Event]:
    """A finished stream as events; `whole` adds what only a whole reply of the dialect can say."""
    blocks = draw(_blocks(dialect, whole=whole))
    called = any(isinstance(event, Opened) and event.kind == "tool_call" for events in blocks for event in events)
    finish = "tool_calls" if called else draw(st.sampled_from(sorted(_FINISHES[dialect])))
    word = _CALLED[dialect] if called else _FINISHES[dialect][finish]
    sequence = draw(texts) if finish == "stop_sequence" else None
    ended = Ended(finish, word, sequence)
    return [draw(_starts(dialect)), *draw(_interleave(blocks)), ended, draw(_usage(dialect, whole=whole)), Done()]


@st.composite
def failing_streams(draw: DrawFn, dialect: ModuleType) -> list[Event]:
    """A stream that fails within its first block."""
    fault = Fault(
        draw(texts.map(str.strip).filter(bool)),
        type=None if dialect is responses else draw(words),
        code=None if dialect is messages else draw(words),
    )
    word = "failed" if dialect is responses else None
    block = [Opened((0, 0), "text"), *(Delta((0, 0), "text", piece) for piece in draw(pieces(draw(_texts(dialect)))))]
    return [draw(_starts(dialect)), *block, Ended("error", word, status="failed", fault=fault), Done()]


def _starts(dialect: ModuleType) -> SearchStrategy[Started]:
    created = st.none() if dialect is messages else st.integers(1, 2**32)
    return st.builds(Started, id=words, model=words, created=created)


def _texts(dialect: ModuleType) -> SearchStrategy[str]:
    """A block's text; a chat text that began with `<think>` would rightly read as thinking."""
    return texts.filter(lambda text: not text.lstrip().startswith("<")) if dialect is chat else texts


@st.composite
def _blocks(draw: DrawFn, dialect: ModuleType, *, whole: bool) -> list[list[Event]]:
    """The events of each block of a reply, at the addresses that the dialect's reader gives."""
    spoken = draw(st.lists(st.sampled_from(_text_kinds(dialect)), max_size=3))
    if dialect is chat:
        spoken = spoken[:1]
    calls = draw(st.integers(0, 3))
    blocks: list[list[Event]] = []
    for index, kind in enumerate(spoken):
        at: Address = (0, index)
        deltas = [Delta(at, kind, piece) for piece in draw(pieces(draw(_texts(dialect))))]
        signed = [Delta(at, "signature", draw(words))] if kind == "thinking" and draw(st.booleans()) else []
        latency = draw(counts) if whole and kind == "thinking" else None
        blocks.append([Opened(at, kind), *deltas, *signed, Closed(at, latency_ms=latency)])
    first = {chat: 0, responses: 1 if spoken else 0, messages: len(spoken)}[dialect]
    for number in range(first, first + calls):
        at = {chat: (1, number), responses: (number, 0), messages: (0, number)}[dialect]
        deltas = [Delta(at, "tool_call", piece) for piece in draw(pieces(draw(arguments)))]
        blocks.append([Opened(at, "tool_call", f"call_{number}", draw(words)), *deltas, Closed(at)])
    return blocks


def _text_kinds(dialect: ModuleType) -> list[str]:
    return {chat: ["text", "refusal"], responses: ["text", "refusal"], messages: ["thinking", "text"]}[dialect]


@st.composite
def _interleave(draw: DrawFn, blocks: list[list[Event]]) -> list[Event]:
    """The blocks' events in one order: every block is opened in its turn, the rest may mix."""
    if not draw(st.booleans()):
        return [event for block in blocks for event in block]
    waiting = [list(reversed(block[1:])) for block in blocks]
    mixed: list[Event] = [block[0] for block in blocks]
    while left := [block for block in waiting if block]:
        mixed.append(left[draw(st.integers(0, len(left) - 1))].pop())
    return mixed


@st.composite
def _usage(draw: DrawFn, dialect: ModuleType, *, whole: bool) -> Usage:
    inputs, answered, cached, written = (draw(counts) for _ in range(4))
    reasoning = draw(st.integers(0, answered))
    if dialect is messages and not whole:
        return Usage(output_tokens=answered + 1)
    if dialect is messages:
        derived = ("input_tokens",) if cached or written else ()
        return Usage(inputs + cached + written, answered, None, cached, written, derived=derived)
    if dialect is responses and not whole:
        return Usage(inputs, answered, total_tokens=inputs + answered)
    return Usage(inputs, answered, reasoning, min(cached, inputs), total_tokens=inputs + answered)


def written(dialect: ModuleType, events: Iterable[Event], *, named: bool = False) -> bytes:
    """The bytes of a stream that says these events."""
    writer = dialect.writer(include_usage=True, named=named)
    return b"".join(frame for event in events for frame in writer.write(event))


def read(dialect: ModuleType, chunks: Iterable[bytes]) -> list[Event]:
    """The events that a stream says, however it is cut."""
    decoder, reader = sse.Decoder(), dialect.reader()
    data = [data for chunk in chunks for data in decoder.feed(chunk)] + decoder.end()
    return [event for item in data for event in reader.read(item)] + reader.end()


@st.composite
def cut(draw: DrawFn, data: bytes) -> list[bytes]:
    """The bytes in chunks, cut anywhere."""
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=12)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@st.composite
def line_ends(draw: DrawFn, data: bytes) -> bytes:
    """The same lines, each ended by LF, CR or CRLF; a CR is not followed by an LF that would merge with it."""
    ended, last = [], b""
    for line in data.split(b"\n")[:-1]:
        merges = last == b"\r" and not line
        last = draw(st.sampled_from([b"\r", b"\r\n"] if merges else [b"\n", b"\r", b"\r\n"]))
        ended.append(line + last)
    return b"".join(ended)


_sampling = {"temperature": st.floats(0.0, 2.0), "top_p": st.floats(0.0, 1.0), "stream": st.booleans()}
_pro = st.sampled_from(PRO_MODELS)
_caps = st.integers(1, MINI_OUTPUT_TOKENS)
_prompts = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": texts}), min_size=1
)


def _requests(
    model: type[Request], required: dict[str, SearchStrategy[Any]], optional: dict[str, SearchStrategy[Any]]
) -> SearchStrategy[Request]:
    return st.fixed_dictionaries(required, optional=optional).map(lambda fields: model(**fields))


requests: SearchStrategy[Request] = st.one_of(
    *(
        _requests(
            endpoint.request,
            {"model": st.sampled_from(endpoint.models), endpoint.request.prompt_field: _prompts},
            {**_sampling, endpoint.request.cap: _caps},
        )
        for endpoint in ENDPOINTS.values()
    )
)
"""A valid request of any endpoint."""
_any_text = texts | st.sampled_from(["", " ", " padded ", "{", "[1]", "true", "null", "famnb", "a\r\nb"])
_pictures = st.sampled_from(["https://example.org/cat.png", "data:image/png;base64," + "iVBORw0KGgo" * 12 + "="])
_effort = st.fixed_dictionaries(
    {}, optional={"effort": st.sampled_from(["none", "low", "high"]), "summary": st.sampled_from(["none", "auto"])}
)
_schemas = st.fixed_dictionaries(
    {"schema": st.dictionaries(words, json_values, max_size=2)}, optional={"name": _any_text, "strict": st.booleans()}
)
_form = st.fixed_dictionaries({}, optional={"type": st.sampled_from(["text", "json"])}) | _schemas.map(
    lambda schema: {"type": "json_schema", "json_schema": schema}
)
_tools = st.lists(
    st.fixed_dictionaries(
        {"name": words}, optional={"description": texts, "parameters": st.dictionaries(words, json_values, max_size=2)}
    ).map(lambda function: {"type": "function", "function": function}),
    max_size=2,
)


def _parts(text: str, image: str) -> SearchStrategy[Any]:
    """A message's content: a text, one part, or several, images among them."""
    part = st.builds(lambda words: {"type": text, "text": words}, texts)
    shown = st.builds(lambda url: {"type": image, "image_url": url}, _pictures)
    shown |= st.builds(lambda url: {"type": image, "image_url": {"url": url}}, _pictures)
    return texts | part | st.lists(part | shown, min_size=1, max_size=3)


def _talk(text: str, image: str, *roles: str) -> SearchStrategy[Any]:
    message = st.fixed_dictionaries({"role": st.sampled_from(roles), "content": _parts(text, image)})
    return st.lists(message, min_size=1, max_size=3)


_null = st.none()
_chat_talk = _talk("text", "image_url", "system", "user", "assistant")
_switch = st.sampled_from([{}, {"include_usage": True}, {"include_usage": False}])

wide_requests: SearchStrategy[Request] = st.one_of(
    _requests(
        ChatRequest,
        {"model": st.sampled_from(["fam-mini", "provider/model"]), "messages": _chat_talk},
        {**_sampling, "stream": _null, "reasoning": _effort | _null, "response_format": _form | _null},
    ),
    _requests(
        WebChatRequest,
        {"model": _pro, "messages": _chat_talk},
        {**_sampling, "reasoning": _effort, "response_format": _form, "tools": _tools, "stream_options": _switch},
    ),
    _requests(
        MessagesRequest,
        {"model": _pro, "messages": _talk("text", "image_url", "user", "assistant")},
        {
            **_sampling,
            "system": _parts("text", "image_url") | _null,
            "thinking": st.fixed_dictionaries(
                {"type": st.sampled_from(["enabled", "disabled"])}, optional={"budget_tokens": _caps}
            ),
        },
    ),
    _requests(
        ResponsesRequest,
        {"model": _pro, "input": texts | _talk("input_text", "input_image", "user", "developer")},
        {
            **_sampling,
            "metadata": st.dictionaries(words, texts, max_size=16),
            "store": st.booleans(),
            "instructions": _any_text | _null,
            "previous_response_id": _any_text,
            "reasoning": _effort,
            "text": st.fixed_dictionaries(
                {},
                optional={
                    "format": _schemas.map(lambda schema: {"type": "json_schema", **schema}) | _null,
                    "verbosity": st.sampled_from(["low", "high"]),
                },
            ),
        },
    ),
)
"""A valid request of any endpoint that sets what may be set: texts that a form cannot hold, nulls, empty objects."""
