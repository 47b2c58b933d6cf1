"""Replies and conversations as ordinary notebook output: HTML, Markdown and plain text.

All three read well without kernel, script or network.

Reply ── sections ──┬── text/html      inline styles only; semantic enough for viewers that strip them
                    ├── text/markdown
                    └── text/plain
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, assert_never

import msgspec

from famnb.client.ask import Result
from famnb.client.conversation import Turn
from famnb.formatting import format_size, format_table, html_table, shorten
from famnb.reply import Block, Reply
from famnb.request import Request
from famnb.widget.html import facts, sanitize
from famnb.widget.html.facts import message_texts
from famnb.widget.html.sanitize import SafeHtml

Bundle: TypeAlias = dict[str, str]
"""MIME type to text, as `display(…, raw=True)` takes it."""

# Styles have plain values only: sanitisers of untrusted notebooks drop those they do not know, such as var(). Half
# transparent greys suit light pages and dark ones.
_LINE_COLOUR = "rgba(128,128,128,0.35)"
_BADGE_COLOURS: Mapping[facts.Tone, str] = {"plain": "128,128,128", "warn": "217,130,0", "error": "211,47,47"}
"""Red, green and blue of a badge's border and background."""
MUTED_STYLE = "font-size:0.86em;opacity:0.75;margin:0.3em 0"
"""The style of remarks and figures, which stand back behind what was said."""
_PROMPT_STYLE = (
    "margin:0.5em 0;padding:0.5em 0.8em;background-color:rgba(128,128,128,0.1);border-radius:6px;border-left:none;"
    "white-space:pre-wrap"
)
_THINKING_STYLE = f"margin:0.5em 0;padding:0.1em 0.8em;border-left:2px solid {_LINE_COLOUR};opacity:0.85"
_SUMMARY_STYLE = "cursor:pointer;font-size:0.9em"
_FAILURE_STYLE = (
    "margin:0.5em 0;padding:0.4em 0.8em;border-left:3px solid rgb(211,47,47);background-color:rgba(211,47,47,0.1)"
)
_CARD = SafeHtml(
    '<div style="max-width:780px;margin:0.4em 0 1em;padding-left:5px;line-height:1.5;overflow-wrap:break-word">{}</div>'
)
_FOLD = SafeHtml(f'<details style="margin:0.3em 0"><summary style="{_SUMMARY_STYLE}">{{}}</summary>{{}}</details>')
_LABEL = SafeHtml("<p><strong>{}</strong></p>")
_HEAD = SafeHtml(f'<p style="{MUTED_STYLE}"><strong>{{}}</strong>{{}}</p>')
_BADGE = SafeHtml(
    ' <span style="border:1px solid rgb({colour});background-color:rgba({colour},0.15);border-radius:9px;'
    'padding:0 0.6em;font-size:0.9em;white-space:nowrap">{text}</span>'
)
_ROLE = SafeHtml("<strong>{}</strong><br>")
_PROMPT = SafeHtml(f'<blockquote dir="auto" style="{_PROMPT_STYLE}">{{}}{{}}</blockquote>')
_THINKING = SafeHtml(
    f'<details><summary style="{_SUMMARY_STYLE}">{{}}</summary><div style="{_THINKING_STYLE}">{{}}</div></details>'
)
_TEXT = SafeHtml("{}<div>{}</div>")
_PICTURE = SafeHtml('<p><img style="max-width:100%" alt="image in the answer" src="{}"></p>')
# Base64 that nobody reads, as that of a picture which is a block of its own.
_BINARY = re.compile(r"[A-Za-z0-9+/=]{400,}")
_PICTURE_DATA = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$")
_FAILURE = SafeHtml(f'<p style="{_FAILURE_STYLE}">{{}}</p>')
_NOTE = SafeHtml(f'<p style="{MUTED_STYLE}">{{}}</p>')


class Section(NamedTuple):
    """One section of a transcript, whatever it will be rendered as."""

    kind: Literal["head", "prompt", "thinking", "text", "code", "picture", "failure", "note", "figures"]
    text: str
    """What it says; the data URL of a picture."""
    label: str = ""
    """A heading: the role of a prompt's message, how long the thinking took, or the name of a tool."""
    badges: Sequence[facts.Badge] = ()
    """Remarks on the whole reply, in its head."""


def reply_bundle(reply: Reply) -> Bundle:
    """Return a reply, finished or not, as notebook output."""
    return render(sections(reply))


def render(transcript: Sequence[Section]) -> Bundle:
    """Return the sections of a transcript as notebook output."""
    return {
        "text/html": _CARD.format(SafeHtml().join(map(_html, transcript))),
        "text/markdown": "\n\n".join(map(_markdown, transcript)),
        "text/plain": "\n\n".join(map(_plain, transcript)),
    }


def stack_bundles(titled_bundles: Sequence[tuple[str, Bundle]]) -> Bundle:
    """Return several transcripts, the oldest first, as one output.

    The latest stands first and open; in HTML the older ones are folded under their titles below it.
    """
    (_, latest), *older = reversed(titled_bundles)
    folded = SafeHtml().join(_FOLD.format(title, SafeHtml(bundle["text/html"])) for title, bundle in older)
    return {
        "text/html": SafeHtml(latest["text/html"]) + folded,
        "text/markdown": "\n\n---\n\n".join(bundle["text/markdown"] for _, bundle in reversed(titled_bundles)),
        "text/plain": "\n\n――――\n\n".join(bundle["text/plain"] for _, bundle in reversed(titled_bundles)),
    }


def answer_html(reply: Reply) -> SafeHtml:
    """Return an answer alone: nothing says which model gave it, how long it took, or what it cost."""
    kinds = ("text", "code", "picture", "failure", "note")
    return SafeHtml(render([section for section in sections(reply) if section.kind in kinds])["text/html"])


def conversation_bundle(turns: Sequence[Turn]) -> Bundle:
    """Return turns that follow one another as one output: each prompt with its tool calls and its answer."""
    return join_bundles(list(map(turn_bundle, turns)) or [render([Section("note", "Nothing has been said yet.")])])


def turn_bundle(turn: Turn) -> Bundle:
    """Return one turn of a conversation as notebook output.

    The first turn shows all messages of its request, a later one only the last, since those before are other turns.
    """
    # The last request of a turn also carries the tool calls and results, which are shown as rounds.
    first_reply = turn.reply.rounds[0].reply if turn.reply.rounds else turn.reply
    request = first_reply.request
    content = turn.prompt if isinstance(turn.prompt, str) else json.dumps(turn.prompt, ensure_ascii=False)
    prompt = prompt_sections(request, whole=turn.before is None) or [Section("prompt", content, "user")]
    head, *answer = [section for section in sections(turn.reply) if section.kind != "prompt"]
    rounds: list[Section] = []
    for tool_round in turn.reply.rounds:
        results = iter(tool_round.results)
        for block in tool_round.reply.blocks:
            rounds.append(block_section(block, tool_round.reply))
            # Results are in the order of the calls. The last calls have none if the turn was stopped before them.
            if block.kind == "tool_call" and (result := next(results, None)) is not None:
                rounds.append(result_section(result))
        rounds.append(Section("figures", facts.figures(tool_round.reply)))
    # A reply may be without its request, as one made by hand is.
    losses = [Section("note", loss) for loss in getattr(request, "losses", ())]
    return render([head, *prompt, *losses, *rounds, *answer])


def join_bundles(bundles: Sequence[Bundle]) -> Bundle:
    """Return transcripts that follow one another as one output."""
    separators = {"text/html": "", "text/markdown": "\n\n", "text/plain": "\n\n"}
    return {kind: separator.join(bundle[kind] for bundle in bundles) for kind, separator in separators.items()}


def table_bundle(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> Bundle:
    """Return a table as an output; the first `left` columns are aligned left, the others right."""
    return {
        "text/html": SafeHtml(html_table(head, rows, left=left)),
        "text/markdown": sanitize.markdown_table([head, *rows]),
        "text/plain": format_table(head, rows, left=left),
    }


def prompt_sections(request: Request | None, *, whole: bool) -> list[Section]:
    """Return the messages of a request: all of them if `whole`, else the last."""
    messages = message_texts(request)
    return [Section("prompt", message.text, message.role) for message in (messages if whole else messages[-1:])]


def title(reply: Reply) -> str:
    """Return one line for a folded transcript: the endpoint, how the call ended, and the beginning of the prompt."""
    prompts = [message.text for message in message_texts(reply.request) if message.role == "user"]
    start = shorten(" ".join(prompts[-1].split())) if prompts else ""
    details = [
        reply.endpoint,
        *(badge.text for badge in facts.badges(reply) if badge.tone != "plain"),
        f"“{start}”" if start else "",
    ]
    return " · ".join(detail for detail in details if detail)


def sections(reply: Reply) -> list[Section]:
    """Return the sections of a reply's transcript in order; what is not known is left out."""
    model = reply.model or getattr(reply.request, "model", "")
    head = " · ".join(name for name in (reply.endpoint, model) if name)
    transcript = [Section("head", head, badges=facts.badges(reply))]
    transcript += prompt_sections(reply.request, whole=True)
    transcript += [block_section(block, reply) for block in reply.blocks]
    # Nothing at all would look like a fault of the view. A tool call is an answer, though it may have no arguments.
    if reply.status == "completed" and not any(block.text or block.kind == "tool_call" for block in reply.blocks):
        transcript.append(Section("note", "The answer is empty."))
    failure = facts.failure(reply)
    transcript += [Section("failure", failure)] if failure else []
    transcript += [Section("note", warning) for warning in reply.warnings]
    if reply.parsed is not None:
        transcript.append(Section("note", f"The answer is valid: `reply.parsed` is the {type(reply.parsed).__name__}."))
    return [*transcript, Section("figures", facts.figures(reply))]


def result_section(result: Result) -> Section:
    """Return what a tool call returned, or what the model is told in its place."""
    name = result.call.name
    label = f"{name} returned" if result.error is None else f"{name} did not return; the model is told"
    return Section("code", format_json(result.content) or result.content, label)


def block_section(block: Block, reply: Reply) -> Section:
    """Return one block of a reply as a section."""
    match block.kind:
        case "thinking":
            closed = block.closed or reply.status == "completed"
            return Section("thinking", block.text, facts.describe_thinking(reply.timing, reply.usage, closed=closed))
        case "text":
            # Markdown would lose the indentation.
            code = format_json(block.text)
            return Section("text", block.text) if code is None else Section("code", code)
        case "tool_call":
            arguments = json.dumps(block.arguments, indent=2, ensure_ascii=False) if block.valid else block.text
            return Section("code", arguments, f"calls {block.name}" + ("" if block.valid else " (invalid JSON)"))
        case "refusal":
            return Section("text", block.text, "refused")
        case "image" if _PICTURE_DATA.match(block.text):
            return Section("picture", block.text)
        case "image":
            # As Markdown, whose images are links: its host would learn that a picture was looked at.
            return Section("text", f"![]({block.text})")
        case "logprobs":
            return Section("note", f"The log-probabilities of {len(block.entries)} tokens are in `reply.blocks`.")
        case _:
            text = _BINARY.sub(lambda match: f"{match[0][:16]}…", block.text)
            return Section("code", format_json(text) or text, block.kind)


def picture_html(url: str) -> SafeHtml:
    """Return a picture by its data URL."""
    return _PICTURE.format(url)


def describe_picture(url: str, name: str = "image") -> str:
    """Return name, kind and size of a picture by its data URL."""
    kind, _, data = url.removeprefix("data:image/").partition(";base64,")
    return f"{name}, {kind}, {format_size(len(data) * 3 // 4)}"


def _html(section: Section) -> SafeHtml:
    text, label = section.text, section.label
    heading = _LABEL.format(label) if label else SafeHtml()
    match section.kind:
        case "head":
            badges = [_BADGE.format(colour=_BADGE_COLOURS[tone], text=badge) for badge, tone in section.badges]
            return _HEAD.format(text, SafeHtml().join(badges))
        case "prompt":
            role = SafeHtml() if label == "user" else _ROLE.format(label)
            # <br> for viewers that strip styles: without white-space:pre-wrap they would join the lines.
            return _PROMPT.format(role, SafeHtml.escape(text).replace("\n", SafeHtml("<br>")))
        case "thinking":
            return _THINKING.format(label, sanitize.render_markdown(text))
        case "text":
            return _TEXT.format(heading, sanitize.render_markdown(text))
        case "code":
            return heading + sanitize.code_block(text)
        case "picture":
            return picture_html(text)
        case "failure":
            return _FAILURE.format(text)
        case "note" | "figures":
            return _NOTE.format(text)
        case _:
            assert_never(section.kind)


def _markdown(section: Section) -> str:
    text, label = section.text, _inline(section.label)
    heading = f"**{label}**\n\n" if label else ""
    match section.kind:
        case "head":
            return " · ".join([f"**{_inline(text)}**", *(f"*{badge.text}*" for badge in section.badges)])
        case "prompt":
            return _prefix_lines("> ", f"**{label}**: {sanitize.defuse_markdown(text)}")
        case "thinking":
            return _prefix_lines("> ", f"*{label}*\n\n{sanitize.defuse_markdown(text)}")
        case "text":
            return f"{heading}{sanitize.defuse_markdown(text)}"
        case "code":
            return f"{heading}{sanitize.fence(text)}"
        case "picture":
            return f"*{describe_picture(text)}*"
        case "failure":
            return f"**{_inline(text)}**"
        case "note" | "figures":
            return f"*{_inline(text)}*"
        case _:
            assert_never(section.kind)


def _inline(text: str) -> str:
    """Return a short text for the inside of a Markdown line: nothing in it is markup."""
    return sanitize.escape_markdown(" ".join(text.split()))


def _plain(section: Section) -> str:
    text = sanitize.visible(section.text)
    match section.kind:
        case "head":
            return " · ".join([text, *(badge.text for badge in section.badges)])
        case "prompt":
            return _prefix_lines("> ", f"{section.label}: {text}")
        case "thinking":
            return _prefix_lines("| ", f"{section.label}\n{text}")
        case "text" | "code":
            return f"{sanitize.visible(section.label)}:\n{text}" if section.label else text
        case "picture":
            return f"({describe_picture(section.text)})"
        case "failure" | "note" | "figures":
            return f"({text})"
        case _:
            assert_never(section.kind)


def _prefix_lines(prefix: str, text: str) -> str:
    return "\n".join(f"{prefix}{line}".rstrip() for line in text.split("\n"))


def format_json(text: str) -> str | None:
    """Return a JSON object or list indented, its values as they were written; None for any other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return str(msgspec.json.format(text, indent=2))
    except (ValueError, RecursionError):
        return None
