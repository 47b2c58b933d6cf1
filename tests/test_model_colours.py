"""Colours of models: one each for as long as the process lives, in figures and on the dashboard alike."""

import dataclasses
from datetime import UTC, datetime, timedelta

import matplotlib
import pandas as pd
import pytest

from famnb import model_colours
from famnb.model_colours import COLOURS, group_slots
from famnb.plot.grouping import group_looks
from famnb.plot.palette import LIGHT
from famnb.record import Ledger
from famnb.widget.dashboard.charts import Groups
from tests.support.exchanges import exchange


def test_a_model_keeps_its_colour_whichever_others_are_drawn():
    both = group_slots("model", ["colour-a", "colour-b"])
    assert group_slots("model", ["colour-b"])[0] == both[1]
    frame = pd.DataFrame({"model": ["colour-0", "colour-b", "colour-a"]})
    groups = Groups.of(frame, "model")
    assert groups.labels == ["colour-0", "colour-a", "colour-b"]
    palette = matplotlib.colors.to_hex(COLOURS[both[0] % len(COLOURS)]).lower()
    shown = groups.styles[1]["colour"]
    assert (shown.lower() if shown != "currentColor" else "#000000") == palette
    assert group_slots("model", ["colour-a", "colour-b"]) == both


def test_a_model_has_its_colour_in_every_notebook(monkeypatch: pytest.MonkeyPatch):
    """By the order of first calls in the ledger, whichever is drawn first in a process."""
    start = datetime(2026, 9, 1, tzinfo=UTC)
    with Ledger() as ledger:
        for day, model in enumerate(["a/late", "a/early"]):
            ledger.on_close(exchange(model=model, started_at=start - timedelta(days=day))).result()
        for names in (["a/early", "a/late"], ["a/late", "a/early"], ["a/late"]):
            monkeypatch.setattr(model_colours, "_numbers", {})
            assert dict(zip(names, group_slots("model", names), strict=True))["a/late"] == 1


def test_a_variant_keeps_its_colour_and_has_that_of_the_model_it_is_named_after():
    assert group_slots("model", ["one", "two"])[:2] == (0, 1)
    assert group_slots("variant", ["cold", "two", "one"])[:2] == (0, 1)
    assert group_slots("variant", ["two"])[:1] == (1,)
    # Its model's colour was taken by another variant.
    assert group_slots("variant", ["one"])[:1] == (2,)
    assert group_slots("variant", ["warm", "later"])[:2] == (3, 4)
    assert group_slots("model", ["later"])[:1] == (4,)
    assert group_slots("endpoint", ["chat"])[:1] == (0,)
    frame = pd.DataFrame({"endpoint": ["web", "chat"]})
    assert [group["colour"] for group in Groups.of(frame, "endpoint").styles] == list(COLOURS[:2])


def test_both_kinds_of_a_models_replies_have_its_colour():
    names = ["colour-a, streamed", "colour-a, whole", "colour-b, streamed", "colour-c, whole"]
    palette = dataclasses.replace(LIGHT, **group_looks("model", names))
    styles = [palette.line_style(index) for index in range(4)]
    assert styles[0]["color"] == styles[1]["color"] != styles[2]["color"]
    dashes = [style["linestyle"] for style in styles]
    assert dashes[0] == dashes[2] == "-" != dashes[1] == dashes[3]


def test_models_beyond_the_colours_are_told_apart_otherwise():
    names = [f"colour-many-{number}" for number in range(12)]
    slots = group_slots("model", names)[:12]
    assert len(set(slots)) == 12
    alone = [group_slots("model", [name])[0] for name in names]
    assert [slot % len(COLOURS) for slot in slots] == alone
    first = group_slots("model", ["colour-next-1"])[0]
    others = group_looks("model", ["colour-next-1", "4 others"])["slots"][1]
    assert others != first
    assert group_slots("model", ["colour-next-2"])[0] == (first + 1) % len(COLOURS)
