"""Formulas keep every character, and nothing else is taken for one."""

import pytest

from famnb.widget.html import sanitize


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("It is $5, or $6.", "It is <span>$</span>5, or $6."),
        ("$5 for $x$", "<span>$</span>5 for $x$"),
        ("so $$a + b$$ and $c_1$ hold", "so $$a + b$$ and $c_1$ hold"),
    ],
)
def test_prices_are_not_typeset_and_formulas_may_be(text: str, html: str):
    """A viewer typesets what is between two dollars in one piece of text; a tag between them keeps it from it."""
    assert html in sanitize.render_markdown(text)


@pytest.mark.parametrize(
    "formula",
    [
        r"\(x_i * y_i * z\)",
        r"$\int e^{-x}\,dx \{a\}$",
        "\\[\nx_1 = \\frac{a}{b} \\\\[2pt]\n{} - y_1\n\\]",
        "$$\na_1 \\\\\n{} - b_2 * c * d\n$$",
    ],
)
@pytest.mark.parametrize("before", ["", "so:\n", "- so\n  ", "> so\n> "])
def test_a_formula_keeps_every_sign(formula: str, before: str):
    indent = before.split("\n")[-1]
    text = before + formula.replace("\n", f"\n{indent if indent.strip() in ('', '>') else ''}") + "\n\nend"
    assert formula in sanitize.render_markdown(text)


def test_only_beginnings_of_formulas_take_no_longer_than_words():
    assert sanitize.render_markdown("\\[\n" * 20_000).count("<br>") == 19_999


@pytest.mark.parametrize("command", [r"\href{javascript:x}{y}", r"\htmlData{a=b}{y}", r"\style{color:red}{y}"])
def test_a_formula_that_does_more_than_show_is_not_typeset(command: str):
    """Links and attributes out of a formula: its signs are kept apart, so that every viewer shows it as text."""
    assert sanitize.render_markdown(f"${command}$").count("<span>$</span>") == 2
    assert sanitize.render_markdown(f"\\({command}\\)").count("<span>\\</span>") == 3
    assert sanitize.render_markdown(f"$${command}$$").count("<span>$</span>") == 4


def test_an_escaped_text_is_never_typeset():
    assert sanitize.SafeHtml.escape(r"$5 to $6 \[x\]") == r"<span>$</span>5 to $6 <span>\</span>[x\]"
