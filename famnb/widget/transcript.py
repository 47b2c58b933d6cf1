"""A reply as ordinary notebook output: HTML, Markdown and plain text that read well without kernel, script or network.

Reply ── parts ──┬── text/html      inline styles only; semantic enough for viewers that strip them
                 ├── text/markdown
                 └── text/plain
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias, assert_never

from famnb.client.history import Turn
from famnb.reply import Block, Reply
from famnb.widget import markup, words
from famnb.widget.asked import turns

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


class Part(NamedTuple):
    """One piece of a transcript, whatever it will be written as."""

    kind: Literal["head", "asked", "thinking", "text", "code", "failure", "note", "figures"]
    text: str
    label: str = ""
    badges: Sequence[words.Badge] = ()


def bundle(reply: Reply) -> Bundle:
    """A reply, finished or not, as notebook output."""
    return written(parts(reply))


def written(pieces: Sequence[Part]) -> Bundle:
    """Pieces of a transcript as notebook output."""
    return {
        "text/html": f'<div style="{_CARD}">{"".join(map(_html, pieces))}</div>',
        "text/markdown": "\n\n".join(map(_markdown, pieces)),
        "text/plain": "\n\n".join(map(_plain, pieces)),
    }


def session(titled: Sequence[tuple[str, Bundle]]) -> Bundle:
    """Several transcripts as one output: the latest first and open, the older ones folded under their titles."""
    (_, latest), *older = reversed(titled)
    folded = "".join(
        f'<details style="margin:0.3em 0"><summary style="{_SUMMARY}">{markup.escape(title)}</summary>'
        f"{each['text/html']}</details>"
        for title, each in older
    )
    return {
        "text/html": latest["text/html"] + folded,
        "text/markdown": "\n\n---\n\n".join(each["text/markdown"] for _, each in reversed(titled)),
        "text/plain": "\n\n――――\n\n".join(each["text/plain"] for _, each in reversed(titled)),
    }


def talk(turns: Sequence[Turn]) -> Bundle:
    """The current branch of a conversation as one output: each turn with its tool calls and its answer."""
    pieces = [piece for turn in turns for piece in _of_turn(turn)] or [Part("note", "Nothing has been said yet.")]
    return written(pieces)


def title(reply: Reply) -> str:
    """One line for a folded transcript: where it was asked, how it ended, and the beginning of the prompt."""
    asked = [turn.text for turn in turns(reply.request) if turn.role == "user"]
    prompt = " ".join(asked[-1].split()) if asked else ""
    shown = prompt if len(prompt) <= 60 else prompt[:59] + "…"
    facts = [
        reply.endpoint,
        *(badge.words for badge in words.badges(reply) if badge.tone != "plain"),
        f"“{shown}”" if shown else "",
    ]
    return " · ".join(fact for fact in facts if fact)


def parts(reply: Reply) -> list[Part]:
    """What a transcript says, in order; what is not known is left out."""
    model = reply.model or getattr(reply.request, "model", "")
    head = " · ".join(name for name in (reply.endpoint, model) if name)
    pieces = [Part("head", head, badges=words.badges(reply))]
    pieces += [Part("asked", turn.text, turn.role) for turn in turns(reply.request)]
    pieces += [_of_block(block, reply) for block in reply.blocks]
    if reply.status == "completed" and not any(block.text or block.kind == "tool_call" for block in reply.blocks):
        pieces.append(Part("note", "The answer is empty."))
    failure = words.failure(reply)
    pieces += [Part("failure", failure)] if failure else []
    pieces += [Part("note", warning) for warning in reply.warnings]
    return [*pieces, Part("figures", words.figures(reply))]


def _of_turn(turn: Turn) -> list[Part]:
    said = turn.said if isinstance(turn.said, str) else json.dumps(turn.said, ensure_ascii=False)
    rounds = [
        piece
        for each in turn.reply.rounds
        for result in each.results
        for piece in (_of_block(result.call, each.reply), Part("code", result.content, f"{result.call.name} returned"))
    ]
    head, *answer = parts(dataclasses.replace(turn.reply, request=None))
    return [Part("asked", said, "user"), head, *rounds, *answer]


def _of_block(block: Block, reply: Reply) -> Part:
    match block.kind:
        case "thinking":
            closed = block.closed or reply.status == "completed"
            return Part("thinking", block.text, words.thought(reply.timing, reply.usage, closed=closed))
        case "text":
            return Part("code" if _is_json(block.text) else "text", block.text)
        case "tool_call":
            return Part("code", _arguments(block), f"calls {block.name}" + ("" if block.valid else " (invalid JSON)"))
        case "refusal":
            return Part("text", block.text, "refused")
        case _:
            return Part("code", block.text, block.kind)


def _arguments(block: Block) -> str:
    return json.dumps(block.arguments, indent=2, ensure_ascii=False) if block.valid else block.text


def _is_json(text: str) -> bool:
    """Whether a text is JSON as a whole, whose indentation Markdown would lose."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _html(part: Part) -> str:
    text, label = markup.escape(part.text), markup.escape(part.label)
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
                f'<div style="{_THINKING}">{markup.html(part.text)}</div></details>'
            )
        case "text":
            return f"{name}<div>{markup.html(part.text)}</div>"
        case "code":
            return f"{name}{markup.code(part.text)}"
        case "failure":
            return f'<p style="{_FAILURE}">{text}</p>'
        case "note" | "figures":
            return f'<p style="{MUTED}">{text}</p>'
        case _:
            assert_never(part.kind)


def _badge(badge: words.Badge) -> str:
    colour = _TONES[badge.tone]
    style = (
        f"border:1px solid rgb({colour});background-color:rgba({colour},0.15);border-radius:9px;"
        "padding:0 0.6em;font-size:0.9em;white-space:nowrap"
    )
    return f' <span style="{style}">{markup.escape(badge.words)}</span>'


def _markdown(part: Part) -> str:
    text, label = part.text, _inline(part.label)
    name = f"**{label}**\n\n" if label else ""
    match part.kind:
        case "head":
            return " · ".join([f"**{_inline(text)}**", *(f"*{badge.words}*" for badge in part.badges)])
        case "asked":
            return _quoted(f"**{label}**: {markup.markdown(text)}")
        case "thinking":
            return _quoted(f"*{label}*\n\n{markup.markdown(text)}")
        case "text":
            return f"{name}{markup.markdown(text)}"
        case "code":
            return f"{name}{markup.fenced(text)}"
        case "failure":
            return f"**{_inline(text)}**"
        case "note" | "figures":
            return f"*{_inline(text)}*"
        case _:
            assert_never(part.kind)


def _inline(text: str) -> str:
    """A short text inside a Markdown line: nothing in it is markup."""
    return markup.literal(" ".join(text.split()))


def _quoted(markdown: str) -> str:
    return _prefixed("> ", markdown.split("\n"))


def _plain(part: Part) -> str:
    text = markup.visible(part.text)
    match part.kind:
        case "head":
            return " · ".join([text, *(badge.words for badge in part.badges)])
        case "asked":
            return _prefixed("> ", f"{part.label}: {text}".split("\n"))
        case "thinking":
            return _prefixed("| ", [part.label, *text.split("\n")])
        case "text" | "code":
            return f"{markup.visible(part.label)}:\n{text}" if part.label else text
        case "failure" | "note" | "figures":
            return f"({text})"
        case _:
            assert_never(part.kind)


def _prefixed(mark: str, lines: Iterable[str]) -> str:
    return "\n".join(f"{mark}{line}".rstrip() for line in lines)
