"""A reply as ordinary notebook output: HTML, Markdown and plain text that read well without kernel, script or network.

Reply ── parts ──┬── text/html      inline styles only; semantic enough for viewers that strip them
                 ├── text/markdown
                 └── text/plain
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias, assert_never

from famnb.client.ask import Result, Round
from famnb.client.conversation import Turn
from famnb.reply import Block, Reply
from famnb.request import Request
from famnb.widget.html import facts, sanitize
from famnb.widget.html.json_layout import indent_json, is_json
from famnb.widget.html.request_text import message_texts

Bundle: TypeAlias = dict[str, str]
"""MIME type to text, as `display(…, raw=True)` takes it."""

# Sanitisers of untrusted notebooks drop values they do not know, such as var(): the plain value before it stays.
_LINE = "rgba(128,128,128,0.35)"
_TONES = {"plain": "128,128,128", "warn": "217,130,0", "error": "211,47,47"}
_CARD = "max-width:780px;margin:0.4em 0 1em;line-height:1.5;overflow-wrap:break-word"
MUTED = "font-size:0.86em;opacity:0.75;margin:0.3em 0"
_ASKED = (
    "margin:0.5em 0;padding:0.5em 0.8em;background-color:rgba(128,128,128,0.1);border-radius:6px;border-left:none;"
    "white-space:pre-wrap"
)
_THINKING = f"margin:0.5em 0;padding:0.1em 0.8em;border-left:2px solid {_LINE};opacity:0.85"
_SUMMARY = "cursor:pointer;font-size:0.9em"
_FAILURE = (
    "margin:0.5em 0;padding:0.4em 0.8em;border-left:3px solid rgb(211,47,47);background-color:rgba(211,47,47,0.1)"
)


class Section(NamedTuple):
    """One piece of a transcript, whatever it will be written as."""

    kind: Literal["head", "asked", "thinking", "text", "code", "failure", "note", "figures"]
    text: str
    label: str = ""
    badges: Sequence[facts.Badge] = ()


def reply_bundle(reply: Reply) -> Bundle:
    """A reply, finished or not, as notebook output."""
    return render(sections(reply))


def render(pieces: Sequence[Section]) -> Bundle:
    """Pieces of a transcript as notebook output."""
    return {
        "text/html": f'<div style="{_CARD}">{"".join(map(_html, pieces))}</div>',
        "text/markdown": "\n\n".join(map(_markdown, pieces)),
        "text/plain": "\n\n".join(map(_plain, pieces)),
    }


def stack_bundles(titled: Sequence[tuple[str, Bundle]]) -> Bundle:
    """Several transcripts as one output: the latest first and open, the older ones folded under their titles."""
    (_, latest), *older = reversed(titled)
    folded = "".join(
        f'<details style="margin:0.3em 0"><summary style="{_SUMMARY}">{sanitize.escape(title)}</summary>'
        f"{each['text/html']}</details>"
        for title, each in older
    )
    return {
        "text/html": latest["text/html"] + folded,
        "text/markdown": "\n\n---\n\n".join(each["text/markdown"] for _, each in reversed(titled)),
        "text/plain": "\n\n――――\n\n".join(each["text/plain"] for _, each in reversed(titled)),
    }


def conversation_bundle(turns: Sequence[Turn]) -> Bundle:
    """The current branch of a conversation as one output: each turn with its tool calls and its answer."""
    return join_bundles(
        [turn_bundle(turn) for turn in turns] or [render([Section("note", "Nothing has been said yet.")])]
    )


def turn_bundle(turn: Turn) -> Bundle:
    """One turn of a conversation as notebook output; the first one has what was said before it too."""
    *_, reply = calls = [*(each.reply for each in turn.reply.rounds), turn.reply]
    said = turn.said if isinstance(turn.said, str) else json.dumps(turn.said, ensure_ascii=False)
    asked = prompt_sections(calls[0].request, whole=turn.before is None) or [Section("asked", said, "user")]
    head, *answer = [part for part in sections(reply) if part.kind != "asked"]
    rounds = [part for each in turn.reply.rounds for part in _of_round(each)]
    losses = [Section("note", loss) for loss in getattr(calls[0].request, "losses", ())]
    return render([head, *asked, *losses, *rounds, *answer])


def join_bundles(bundles: Sequence[Bundle]) -> Bundle:
    """Transcripts that follow one another as one output."""
    return {
        "text/html": "".join(each["text/html"] for each in bundles),
        "text/markdown": "\n\n".join(each["text/markdown"] for each in bundles),
        "text/plain": "\n\n".join(each["text/plain"] for each in bundles),
    }


def prompt_sections(request: Request | None, *, whole: bool) -> list[Section]:
    """What a request says: all of it, or what comes last."""
    said = message_texts(request)
    return [Section("asked", turn.text, turn.role) for turn in (said if whole else said[-1:])]


def title(reply: Reply) -> str:
    """One line for a folded transcript: where it was asked, how it ended, and the beginning of the prompt."""
    asked = [turn.text for turn in message_texts(reply.request) if turn.role == "user"]
    prompt = " ".join(asked[-1].split()) if asked else ""
    shown = prompt if len(prompt) <= 60 else prompt[:59] + "…"
    details = [
        reply.endpoint,
        *(badge.text for badge in facts.badges(reply) if badge.tone != "plain"),
        f"“{shown}”" if shown else "",
    ]
    return " · ".join(detail for detail in details if detail)


def sections(reply: Reply) -> list[Section]:
    """What a transcript says, in order; what is not known is left out."""
    model = reply.model or getattr(reply.request, "model", "")
    head = " · ".join(name for name in (reply.endpoint, model) if name)
    pieces = [Section("head", head, badges=facts.badges(reply))]
    pieces += [Section("asked", turn.text, turn.role) for turn in message_texts(reply.request)]
    pieces += [block_section(block, reply) for block in reply.blocks]
    if reply.status == "completed" and not any(block.text or block.kind == "tool_call" for block in reply.blocks):
        pieces.append(Section("note", "The answer is empty."))
    failure = facts.failure(reply)
    pieces += [Section("failure", failure)] if failure else []
    pieces += [Section("note", warning) for warning in reply.warnings]
    if reply.parsed is not None:
        pieces.append(Section("note", f"The answer is valid: `reply.parsed` is the {type(reply.parsed).__name__}."))
    return [*pieces, Section("figures", facts.figures(reply))]


def _of_round(each: Round) -> list[Section]:
    """A reply that called tools, each call followed by what it returned."""
    results, made = iter(each.results), []
    for block in each.reply.blocks:
        made.append(block_section(block, each.reply))
        made += [result_section(result) for result in itertools.islice(results, block.kind == "tool_call")]
    return [*made, Section("figures", facts.figures(each.reply))]


def result_section(result: Result) -> Section:
    """What the model is told of a call of its."""
    name = result.call.name
    label = f"{name} returned" if result.error is None else f"{name} did not return; the model is told"
    return Section("code", indent_json(result.content), label)


def block_section(block: Block, reply: Reply) -> Section:
    """One block of a reply."""
    match block.kind:
        case "thinking":
            closed = block.closed or reply.status == "completed"
            return Section("thinking", block.text, facts.describe_thinking(reply.timing, reply.usage, closed=closed))
        case "text":
            return Section("code", indent_json(block.text)) if is_json(block.text) else Section("text", block.text)
        case "tool_call":
            return Section(
                "code", _arguments(block), f"calls {block.name}" + ("" if block.valid else " (invalid JSON)")
            )
        case "refusal":
            return Section("text", block.text, "refused")
        case _:
            return Section("code", block.text, block.kind)


def _arguments(block: Block) -> str:
    return json.dumps(block.arguments, indent=2, ensure_ascii=False) if block.valid else block.text


def _html(part: Section) -> str:
    text, label = sanitize.escape(part.text), sanitize.escape(part.label)
    name = f"<p><strong>{label}</strong></p>" if label else ""
    match part.kind:
        case "head":
            return f'<p style="{MUTED}"><strong>{text}</strong>{"".join(map(_badge, part.badges))}</p>'
        case "asked":
            role = "" if part.label == "user" else f"<strong>{label}</strong><br>"
            lines = text.replace("\n", "<br>")
            return f'<blockquote dir="auto" style="{_ASKED}">{role}{lines}</blockquote>'
        case "thinking":
            return (
                f'<details><summary style="{_SUMMARY}">{label}</summary>'
                f'<div style="{_THINKING}">{sanitize.render_markdown(part.text)}</div></details>'
            )
        case "text":
            return f"{name}<div>{sanitize.render_markdown(part.text)}</div>"
        case "code":
            return f"{name}{sanitize.code_block(part.text)}"
        case "failure":
            return f'<p style="{_FAILURE}">{text}</p>'
        case "note" | "figures":
            return f'<p style="{MUTED}">{text}</p>'
        case _:
            assert_never(part.kind)


def _badge(badge: facts.Badge) -> str:
    colour = _TONES[badge.tone]
    style = (
        f"border:1px solid rgb({colour});background-color:rgba({colour},0.15);border-radius:9px;"
        "padding:0 0.6em;font-size:0.9em;white-space:nowrap"
    )
    return f' <span style="{style}">{sanitize.escape(badge.text)}</span>'


def _markdown(part: Section) -> str:
    text, label = part.text, _inline(part.label)
    name = f"**{label}**\n\n" if label else ""
    match part.kind:
        case "head":
            return " · ".join([f"**{_inline(text)}**", *(f"*{badge.text}*" for badge in part.badges)])
        case "asked":
            return _quoted(f"**{label}**: {sanitize.defuse_markdown(text)}")
        case "thinking":
            return _quoted(f"*{label}*\n\n{sanitize.defuse_markdown(text)}")
        case "text":
            return f"{name}{sanitize.defuse_markdown(text)}"
        case "code":
            return f"{name}{sanitize.fence(text)}"
        case "failure":
            return f"**{_inline(text)}**"
        case "note" | "figures":
            return f"*{_inline(text)}*"
        case _:
            assert_never(part.kind)


def _inline(text: str) -> str:
    """A short text inside a Markdown line: nothing in it is markup."""
    return sanitize.escape_markdown(" ".join(text.split()))


def _quoted(markdown: str) -> str:
    return _prefixed("> ", markdown.split("\n"))


def _plain(part: Section) -> str:
    text = sanitize.visible(part.text)
    match part.kind:
        case "head":
            return " · ".join([text, *(badge.text for badge in part.badges)])
        case "asked":
            return _prefixed("> ", f"{part.label}: {text}".split("\n"))
        case "thinking":
            return _prefixed("| ", [part.label, *text.split("\n")])
        case "text" | "code":
            return f"{sanitize.visible(part.label)}:\n{text}" if part.label else text
        case "failure" | "note" | "figures":
            return f"({text})"
        case _:
            assert_never(part.kind)


def _prefixed(mark: str, lines: Iterable[str]) -> str:
    return "\n".join(f"{mark}{line}".rstrip() for line in lines)
