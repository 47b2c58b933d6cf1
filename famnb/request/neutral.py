"""The conversation and the settings of a request in terms that all endpoints share.

The local service, the ledger and the widgets read any request through these, by `turns`, `system_turn` and `settings`.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any, Literal

import msgspec

from famnb.request.types import StrictModel, ToolName


class Function(StrictModel):
    """A function the model may call."""

    name: ToolName
    """a-z, A-Z, 0-9, underscore and dash; at most 64 characters."""
    description: str | None = None
    """What it does, for the model."""
    parameters: dict[str, Any] | None = None
    """Its parameters as a JSON Schema."""


class PromptToolCall(msgspec.Struct, frozen=True):
    """A tool call that an assistant's turn made."""

    id: str
    name: str
    arguments: str
    """JSON text, as the model wrote it."""


class PromptTurn(msgspec.Struct, frozen=True):
    """One message of the conversation."""

    # A msgspec struct rather than a dataclass: a body may hold half a million messages, and structs are made faster.

    role: Literal["system", "developer", "user", "assistant", "tool"]
    text: str
    """The text of the message, without its tool calls."""
    images: tuple[str, ...] = ()
    """Addresses of images; never opened."""
    # These two have other names in JSON, which the files of `famnb.service.store` hold.
    tool_calls: tuple[PromptToolCall, ...] = msgspec.field(default=(), name="calls")
    """The tool calls of an assistant's turn."""
    tool_call_id: str = msgspec.field(default="", name="answers")
    """The id of the call whose result a tool's turn is."""
    name: str = ""
    """Who speaks, where several share a role."""

    @property
    def digest(self) -> str:
        """32 hexadecimal digits that stand for text and images: the same for the same message on every endpoint.

        Digests are stored, so that a change of this would have equal prompts of old and new calls differ.
        """
        content = "\0".join((self.text, *self.images))
        # A prompt may hold half a character, which plain UTF-8 does not have.
        return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    @property
    def full_text(self) -> str:
        """The text, followed by the tool calls as `name(arguments)`, a line each."""
        calls = [f"{call.name}({call.arguments})" for call in self.tool_calls]
        return "\n".join(filter(None, [self.text, *calls])) if calls else self.text


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

    @property
    def labels(self) -> tuple[str, ...]:
        """The request fields beside the schema that are set."""
        path = self.field.removesuffix("schema")
        values = {"name": self.name or None, "strict": self.strict}
        return tuple(f"{path}{name}" for name, value in values.items() if value is not None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSettings:
    """How an answer is to be generated, the endpoint's defaults filled in."""

    cap: int
    """At most this many generated tokens, thinking and reasoning included."""
    temperature: float | None = None
    top_p: float | None = None
    thinking: int | None = None
    """The budget, in tokens, of thinking that is to be shown; None when none is."""
    effort: str | None = None
    """The effort of reasoning that is counted but not shown; None or `none` when there is none."""
    tools: tuple[Function, ...] = ()
    """The functions the model may call."""
    tool_choice: Literal["none", "auto", "required"] = "auto"
    forced_tool: str | None = None
    """The name of the one tool that must be called."""
    parallel_tool_calls: bool | None = None
    """Whether one answer may call several tools; None if the request does not say."""
    answer_format: AnswerFormat = AnswerFormat()
    verbosity: str | None = None
    """`low`, `medium` or `high`, where asked for."""
    stop: tuple[str, ...] = ()
    """Texts before which the answer ends."""
    sampling: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of the sampling that only some engines have, by their names in a chat completion."""


SAMPLING = (
    *("seed", "frequency_penalty", "presence_penalty", "logit_bias", "top_k", "min_p", "logprobs", "top_logprobs"),
)
"""The names of settings that only some engines have."""
FieldPath = tuple[str, ...]
"""A field's place in the body: ("thinking", "budget_tokens")."""


@dataclasses.dataclass(frozen=True, slots=True)
class FormatPaths:
    """Where a request has the format of the answer."""

    outer: FieldPath
    """The field that holds the `type` of the format."""
    inner: FieldPath
    """The field that holds `schema`, and with it the other `names`."""
    names: tuple[str, ...] = ("name", "schema", "strict")
    """What stands there."""

    @property
    def type(self) -> FieldPath:
        """The path of the format's type."""
        return (*self.outer, "type")

    @property
    def schema(self) -> FieldPath:
        """The path of the JSON Schema."""
        return (*self.inner, "schema")

    def counterparts(self, other: FormatPaths) -> dict[FieldPath, FieldPath]:
        """Map each path to the one with the same meaning in another endpoint's request."""
        names = {(*self.inner, name): (*other.inner, name) for name in self.names if name in other.names}
        return {self.type: other.type, **names}
