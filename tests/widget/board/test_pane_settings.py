"""The settings of panes: whatever users write as variants is read, labelled and made a request."""

from __future__ import annotations

from types import SimpleNamespace

import famnb
from famnb.widget.board.pane_settings import read_variants


def test_whatever_has_a_label_and_fields_is_a_variant():
    """So are requests, which keep their settings and take the board's prompt."""
    grid = [SimpleNamespace(label="cold", fields={"model": "fam-mini", "temperature": 0.0})]
    panes = read_variants([*grid, famnb.compose("messages", "Own?", system="Brief.", max_tokens=9)])
    first, second = (pane.request("Asked?") for pane in panes)
    assert (first.endpoint, first.temperature, first.stream) == ("chat", 0.0, True)
    assert second.max_tokens == 9
    assert "Asked?" in str(second.body()["messages"])
    assert "Brief." in str(second.body()["system"])
    assert "Own?" in str(panes[1].request("").body())


def test_variants_are_named_by_what_tells_them_apart():
    """Endpoint and model, and only the fields that differ; equals are numbered."""
    mild, warm = ({"model": "fam-mini", "top_p": 0.5, "temperature": t} for t in (0.1, 0.9))
    assert [pane.label for pane in read_variants([mild, warm, warm])] == [
        "chat · fam-mini · temperature=0.1",
        "chat · fam-mini · temperature=0.9",
        "chat · fam-mini · temperature=0.9 (2)",
    ]


def test_a_pane_asks_a_stream_for_its_usage_unless_told_otherwise():
    """Where it must be asked for; a whole request is its owner's."""
    own = famnb.WebChatRequest(model="fam-2-5-pro", messages=[{"role": "user", "content": "Own?"}], stream=True)
    variants = {
        "plain": {"endpoint": "web"},
        "declined": {"endpoint": "web", "stream_options": None},
        "whole": {"endpoint": "web", "stream": False},
        "own": own,
        "other": {"endpoint": "messages"},
    }
    asking = {pane.label: pane.request("Asked?").asks_for_usage for pane in read_variants(variants)}
    assert asking == {"plain": True, "declined": False, "whole": False, "own": False, "other": False}
