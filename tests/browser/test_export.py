"""A saved notebook without a kernel, without scripts and without a network still tells the whole transcript."""

from pathlib import Path

import nbconvert
import nbformat
import pytest
from playwright.sync_api import Browser

from famnb.endpoints import compose
from famnb.events import Usage
from famnb.reply import Block, Reply
from famnb.timing import Timing
from famnb.widget.board.rounds import BoardAnswer, BoardRound, round_bundle
from famnb.widget.html import transcript
from tests.support.scripted_stream import ScriptedStream

REPLY = Reply(
    model="fam-2-5-pro",
    endpoint="messages",
    request=compose("messages", "Why is the sky blue?", system="Be brief."),
    blocks=(
        Block(at=(0, 0), kind="thinking", text="Scattering, surely.", closed=True),
        Block(at=(0, 1), kind="text", text="It costs $5 or $6.\n\n```python\nsky = 'blue'\n```", closed=True),
        Block(at=(0, 2), kind="tool_call", text='{"wavelength": 450}', name="look_up", closed=True),
    ),
    status="completed",
    streamed=True,
    complete=True,
    usage=Usage(input_tokens=1204, output_tokens=452),
    timing=Timing(ttft_s=0.42, e2e_s=3.1),
)
TRANSCRIPT_WORDS = (
    *("Be brief.", "Why is the sky blue?", "Scattering, surely.", "It costs $5 or $6.", "sky = 'blue'"),
    *("calls look_up", '"wavelength": 450', "1,204 tokens in", "first token 0.42 s"),
)


def board_round() -> BoardRound:
    """A round of two answers, of which the second one is pinned."""
    turn = BoardRound(number=0, key="0", prompt="Which is it?", system="", tag="", winner_key="p2")
    for key, label in (("p1", "left one"), ("p2", "right one")):
        stream = ScriptedStream().end(**{name: getattr(REPLY, name) for name in ENDED})
        turn.add(key, BoardAnswer(stream, key=key, label=label))
    return turn


ENDED = ("model", "blocks", "status", "usage", "timing")
BOARD_WORDS = ("Which is it?", "left one", "right one", "★ winner", "unknown", "0.42 s")


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    """A notebook file with a reply and the round of a board in it, as cells leave them there."""
    bundles = {
        "client.ask('Why is the sky blue?')": transcript.reply_bundle(REPLY),
        "board": round_bundle(board_round(), is_marked=False),
    }
    cells = [
        nbformat.v4.new_code_cell(source, outputs=[nbformat.v4.new_output("display_data", data=bundle)])
        for source, bundle in bundles.items()
    ]
    path = tmp_path / "saved.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_exported_html_tells_all_without_scripts_and_network(browser: Browser, notebook: Path):
    exported = notebook.with_suffix(".html")
    exported.write_text(nbconvert.HTMLExporter().from_filename(str(notebook))[0])
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(exported.as_uri())
    shown = page.locator(".jp-OutputArea-output")
    reply, board = shown.nth(0), shown.nth(1)
    assert not reply.get_by_text("Scattering, surely.").is_visible()
    reply.locator("summary").click()
    assert [words for words in TRANSCRIPT_WORDS if words not in reply.inner_text()] == []
    assert board.locator("th[scope=col]").count() == 2
    assert [words for words in BOARD_WORDS if words not in board.inner_text()] == []
    context.close()
