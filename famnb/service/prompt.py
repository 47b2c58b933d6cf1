"""`GenerationPrompt`: a request of any endpoint in one neutral form, so that engines know nothing of endpoints."""

from __future__ import annotations

import dataclasses

import msgspec

from famnb.request import ChatRequest, MessagesRequest, Request, ResponsesRequest, WebChatRequest
from famnb.request.message_parts import ChatMessage, Reasoning, ResponseFormat, images, plain_text
from famnb.request.responses import InputItem, TextFormat
from famnb.request.types import MINI_OUTPUT_TOKENS
from famnb.request.web import Function, NamedTool


class PromptToolCall(msgspec.Struct, frozen=True):
    """A tool call that an assistant's turn made."""

    id: str
    name: str
    arguments: str
    """JSON text, as the model wrote it."""


class PromptTurn(msgspec.Struct, frozen=True):
    """One message of the conversation.

    A msgspec struct rather than a dataclass: a body may hold half a million messages, and structs are made faster.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    """The message without its tool calls."""
    images: tuple[str, ...] = ()
    """Addresses of images; never opened."""
    # These two are named as in the files of `SqliteStore`, which holds turns as JSON.
    tool_calls: tuple[PromptToolCall, ...] = msgspec.field(default=(), name="calls")
    """The tool calls of an assistant's turn."""
    tool_call_id: str = msgspec.field(default="", name="answers")
    """The id of the call whose result a tool's turn is."""

    @property
    def full_text(self) -> str:
        """The message with its tool calls as `name(arguments)`, a line each."""
        calls = [f"{call.name}({call.arguments})" for call in self.tool_calls]
        return "\n".join(filter(None, [self.text, *calls])) if calls else self.text


@dataclasses.dataclass(frozen=True, slots=True)
class PriorConversation:
    """The conversation that a request continues; empty for a new one."""

    turns: tuple[PromptTurn, ...] = ()
    """All turns, those with system text in the `input` among them, but not the `instructions`."""
    system: str = ""
    """The system text under which the engine saw them."""


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerFormat:
    """The format that the answer must have."""

    json: bool = False
    schema: dict[str, Any] | None = None
    """The JSON Schema that the answer must satisfy; None for any JSON."""
    field: str = ""
    """The request field that holds the schema, for error messages."""
    name: str = ""
    """The name of the schema; empty if the request gives none."""
    strict: bool | None = None
    """Whether the schema must be followed exactly; None if the request does not say."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPrompt:
    """What an engine is to generate, whichever endpoint the request came through."""

    model: str
    prompt_field: str = "messages"
    """The request field that holds the conversation, for an error that names it."""
    streams: bool = False
    """Whether the caller wants the answer as it comes."""
    system: str = ""
    """The system text; empty if there is none."""
    turns: tuple[PromptTurn, ...]
    """The conversation without its system text, oldest first."""
    cap: int
    """The maximum of generated tokens, thinking and reasoning included."""
    explicit: frozenset[str] = frozenset()
    """Which of `cap`, `temperature` and `top_p` the request sets; the others are the endpoint's defaults."""
    temperature: float | None = None
    top_p: float | None = None
    thinking: int | None = None
    """The budget, in tokens, of thinking that is part of the reply; None if it is not."""
    effort: str | None = None
    """The effort of reasoning that is counted but not part of the reply; None or `none` for no reasoning."""
    tools: tuple[Function, ...] = ()
    tool_choice: Literal["none", "auto", "required"] = "auto"
    forced_tool: str | None = None
    """The name of the one tool that must be called."""
    answer_format: AnswerFormat = AnswerFormat()
    verbosity: str | None = None
    """`low`, `medium` or `high`; None if the request does not say."""
    seen_turns: int = 0
    """How many leading turns the engine has seen before, under the same system text: they count as cached tokens."""


def read_turns(request: Request) -> tuple[PromptTurn, ...]:
    """Return the turns that a request itself carries, system turns included."""
    match request:
        case ChatRequest() | WebChatRequest():
            return tuple(map(_chat_turn, request.messages))
        case ResponsesRequest():
            items = [request.input] if isinstance(request.input, str) else request.input
            return tuple(map(_input_turn, items))
        case MessagesRequest():
            return tuple(
                PromptTurn(message.role, plain_text(message.content), images(message.content))
                for message in request.messages
            )
        case _:
            raise TypeError(f"no prompt can be made of a {type(request).__name__}")


def build_prompt(request: Request, prior: PriorConversation = PriorConversation()) -> GenerationPrompt:
    """Return the prompt of a request that continues `prior`."""
    turns = (*prior.turns, *read_turns(request))
    fields, instructions = _endpoint_fields(request)
    system = "\n\n".join(filter(None, [instructions, *(turn.text for turn in turns if turn.role == "system")]))
    return GenerationPrompt(
        model=request.model,
        prompt_field=request.prompt_field,
        turns=tuple(turn for turn in turns if turn.role != "system"),
        system=system,
        streams=request.streams,
        explicit=frozenset(
            neutral
            for neutral, field in {"cap": request.cap, "temperature": "temperature", "top_p": "top_p"}.items()
            if field in request.model_fields_set
        ),
        seen_turns=sum(turn.role != "system" for turn in prior.turns) if prior.system == system else 0,
        **fields,
    )


def _endpoint_fields(request: Request) -> tuple[dict[str, Any], str]:
    """Return what each endpoint says in its own way, as fields of GenerationPrompt, and its separate system text."""
    match request:
        case ChatRequest():
            return {
                **_sampling(request, request.max_tokens or MINI_OUTPUT_TOKENS),
                "effort": _effort(request.reasoning),
                "answer_format": _chat_format(request.response_format),
            }, ""
        case WebChatRequest():
            forced = request.tool_choice.function.name if isinstance(request.tool_choice, NamedTool) else None
            return {
                **_sampling(request, request.max_new_tokens),
                "effort": _effort(request.reasoning),
                "answer_format": _chat_format(request.response_format),
                "tools": tuple(tool.function for tool in request.tools or ()),
                "tool_choice": "required" if forced else request.tool_choice,
                "forced_tool": forced,
            }, ""
        case ResponsesRequest():
            return {
                **_sampling(request, request.max_output_tokens),
                "effort": _effort(request.reasoning),
                "answer_format": _text_format(request.text.format if request.text else None),
                "verbosity": request.text.verbosity if request.text else None,
            }, request.instructions or ""
        case MessagesRequest():
            enabled = request.thinking if request.thinking and request.thinking.type == "enabled" else None
            return {
                **_sampling(request, request.max_tokens),
                "thinking": (enabled.budget_tokens or request.max_tokens) if enabled else None,
            }, plain_text(request.system)
        case _:
            raise TypeError(f"no prompt can be made of a {type(request).__name__}")


def _sampling(request: ChatRequest | WebChatRequest | ResponsesRequest | MessagesRequest, cap: int) -> dict[str, Any]:
    return {"model": request.model, "cap": cap, "temperature": request.temperature, "top_p": request.top_p}


def _effort(reasoning: Reasoning | None) -> str | None:
    return reasoning.effort if reasoning else None


def _chat_format(form: ResponseFormat | None) -> AnswerFormat:
    if form is None or form.type == "text":
        return AnswerFormat()
    field = "response_format.json_schema.schema"
    if form.json_schema is None or form.type != "json_schema":
        return AnswerFormat(True, None, field)
    return AnswerFormat(True, form.json_schema.schema_, field, form.json_schema.name or "", form.json_schema.strict)


def _text_format(form: TextFormat | None) -> AnswerFormat:
    if form is None or form.type == "text":
        return AnswerFormat()
    schema = form.schema_ if form.type == "json_schema" else None
    return AnswerFormat(True, schema, "text.format.schema", form.name or "", form.strict)


def _chat_turn(message: ChatMessage) -> PromptTurn:
    role = "system" if message.role == "developer" else message.role
    calls = tuple(
        PromptToolCall(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()
    )
    return PromptTurn(role, plain_text(message.content), images(message.content), calls, message.tool_call_id or "")


def _input_turn(item: str | InputItem) -> PromptTurn:
    if isinstance(item, str):
        return PromptTurn("user", item)
    role = "system" if item.role == "developer" else item.role
    return PromptTurn(role, plain_text(item.content), images(item.content))
