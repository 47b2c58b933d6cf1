"""Any request as one neutral prompt, so that engines know nothing of endpoints; what to answer is left to them."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

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
    """One message of the conversation; a struct, because a body may hold half a million."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    """What was said, tool calls apart."""
    images: tuple[str, ...] = ()
    """Addresses of images; never opened."""
    calls: tuple[PromptToolCall, ...] = ()
    """The tool calls of an assistant's turn."""
    answers: str = ""
    """The id of the call whose result a tool's turn is."""

    @property
    def words(self) -> str:
        """What was said, tool calls included as `name(arguments)`, a line each."""
        called = [f"{call.name}({call.arguments})" for call in self.calls]
        return "\n".join(filter(None, [self.text, *called])) if called else self.text


@dataclasses.dataclass(frozen=True, slots=True)
class PriorConversation:
    """The conversation that a request continues; empty for a new one."""

    turns: tuple[PromptTurn, ...] = ()
    """Every turn so far: system turns of the input are among them, `instructions` are not."""
    system: str = ""
    """The system text under which the engine saw them."""


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerFormat:
    """The form that the answer must have."""

    json: bool = False
    schema: dict[str, Any] | None = None
    """The JSON Schema that the answer must satisfy; None for any JSON."""
    at: str = ""
    """The request field that holds the schema, for an error that names it."""
    name: str = ""
    """What the schema is called; empty when the request does not say."""
    strict: bool | None = None
    """Whether the schema must be followed exactly, where the request says."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPrompt:
    """What is asked, whichever endpoint it came through."""

    model: str
    streams: bool = False
    """Whether the caller wants the answer as it comes."""
    system: str = ""
    """The system text; empty when there is none."""
    turns: tuple[PromptTurn, ...]
    """The conversation without its system text, oldest first."""
    cap: int
    """At most this many generated tokens, thinking and reasoning included."""
    asked: frozenset[str] = frozenset()
    """Which of `cap`, `temperature` and `top_p` the request set itself rather than leave to the endpoint."""
    temperature: float | None = None
    top_p: float | None = None
    thinking: int | None = None
    """The budget, in tokens, of thinking that is to be shown; None when none is."""
    effort: str | None = None
    """The effort of reasoning that is counted but not shown; None or `none` when there is none."""
    tools: tuple[Function, ...] = ()
    tool_choice: Literal["none", "auto", "required"] = "auto"
    forced_tool: str | None = None
    """The name of the one tool that must be called."""
    form: AnswerFormat = AnswerFormat()
    verbosity: str | None = None
    """`low`, `medium` or `high`, where asked for."""
    repeated: int = 0
    """How many leading turns the engine has seen before, under the same system text."""


def conversation(request: Request) -> tuple[PromptTurn, ...]:
    """The turns that a request itself carries, system turns included."""
    match request:
        case ChatRequest() | WebChatRequest():
            return tuple(map(_chat_turn, request.messages))
        case ResponsesRequest():
            given = [request.input] if isinstance(request.input, str) else request.input
            return tuple(map(_input_turn, given))
        case MessagesRequest():
            return tuple(
                PromptTurn(said.role, plain_text(said.content), images(said.content)) for said in request.messages
            )
        case _:
            raise TypeError(f"no prompt can be made of a {type(request).__name__}")


def build_prompt(request: Request, earlier: PriorConversation = PriorConversation()) -> GenerationPrompt:
    """The neutral prompt of a request that continues an earlier conversation."""
    turns = (*earlier.turns, *conversation(request))
    own, instructions = _own(request)
    system = "\n\n".join(filter(None, [instructions, *(turn.text for turn in turns if turn.role == "system")]))
    return GenerationPrompt(
        turns=tuple(turn for turn in turns if turn.role != "system"),
        system=system,
        streams=request.streams,
        asked=frozenset(
            neutral
            for neutral, field in {"cap": request.cap, "temperature": "temperature", "top_p": "top_p"}.items()
            if field in request.model_fields_set
        ),
        repeated=sum(turn.role != "system" for turn in earlier.turns) if earlier.system == system else 0,
        **own,
    )


def _own(request: Request) -> tuple[dict[str, Any], str]:
    """What each endpoint says in its own way, as fields of Prompt; and its system text outside the conversation."""
    match request:
        case ChatRequest():
            return {
                **_sampling(request, request.max_tokens or MINI_OUTPUT_TOKENS),
                "effort": _effort(request.reasoning),
                "form": _chat_form(request.response_format),
            }, ""
        case WebChatRequest():
            forced = request.tool_choice.function.name if isinstance(request.tool_choice, NamedTool) else None
            return {
                **_sampling(request, request.max_new_tokens),
                "effort": _effort(request.reasoning),
                "form": _chat_form(request.response_format),
                "tools": tuple(tool.function for tool in request.tools or ()),
                "tool_choice": "required" if forced else request.tool_choice,
                "forced_tool": forced,
            }, ""
        case ResponsesRequest():
            return {
                **_sampling(request, request.max_output_tokens),
                "effort": _effort(request.reasoning),
                "form": _text_form(request.text.format if request.text else None),
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


def _chat_form(form: ResponseFormat | None) -> AnswerFormat:
    if form is None or form.type == "text":
        return AnswerFormat()
    at = "response_format.json_schema.schema"
    if form.json_schema is None or form.type != "json_schema":
        return AnswerFormat(True, None, at)
    return AnswerFormat(True, form.json_schema.schema_, at, form.json_schema.name or "", form.json_schema.strict)


def _text_form(form: TextFormat | None) -> AnswerFormat:
    if form is None or form.type == "text":
        return AnswerFormat()
    schema = form.schema_ if form.type == "json_schema" else None
    return AnswerFormat(True, schema, "text.format.schema", form.name or "", form.strict)


def _chat_turn(message: ChatMessage) -> PromptTurn:
    role = "system" if message.role == "developer" else message.role
    said = message.tool_calls or ()
    calls = tuple(PromptToolCall(call.id, call.function.name, call.function.arguments) for call in said)
    return PromptTurn(role, plain_text(message.content), images(message.content), calls, message.tool_call_id or "")


def _input_turn(item: str | InputItem) -> PromptTurn:
    if isinstance(item, str):
        return PromptTurn("user", item)
    role = "system" if item.role == "developer" else item.role
    return PromptTurn(role, plain_text(item.content), images(item.content))
