"""Colours that can be told apart, on light and dark ground."""

import itertools

import matplotlib
import numpy as np

from famnb import plot
from famnb.model_colours import COLOURS, PART_COLOURS
from famnb.plot.palette import DARK, LIGHT, dark_colours
from tests.support.plot_frames import many_calls


def test_lines_can_be_told_apart_without_seeing_all_colours():
    lines = plot.latency(many_calls(models=6)).axes[0].get_lines()
    steps = [line for line in lines if len(line.get_xdata()) > 2]
    assert {line.get_color() for line in steps} <= {*COLOURS[:-1], LIGHT.strong}
    looks = [LIGHT.line_style(index) for index in range(28)]
    assert len({tuple(map(str, look.values())) for look in looks}) == 28
    assert [look["linestyle"] == "-" for look in looks[:4]] == [True, True, False, False]


def test_no_part_of_a_call_looks_like_a_model():
    for part, other in itertools.product(PART_COLOURS.values(), [*COLOURS, *PART_COLOURS.values()]):
        assert part == other or difference(part, other) > 9


def test_dots_stand_out_on_dark_ground():
    """On the page, and in the caller's axes."""
    host = matplotlib.figure.Figure(facecolor="black")
    figures = [plot.compare(many_calls()), plot.compare(many_calls(), ax=host.add_subplot(facecolor="black"))]
    with dark_colours(figures[0]):
        for figure in figures:
            assert {dots.get_alpha() for dots in figure.axes[0].lines if dots.get_alpha()} == {DARK.dot_alpha}
    assert {dots.get_alpha() for dots in figures[0].axes[0].lines if dots.get_alpha()} == {LIGHT.dot_alpha}


# What eyes without the cones of red, green or blue see (Machado, Oliveira, Fernandes 2009), in linear sRGB.
EYES = (
    np.eye(3),
    np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
)


def difference(colour: str, other: str) -> float:
    """How different two colours look, in CIE 1976's units, to the eye that tells them apart worst."""
    return min(float(np.linalg.norm(lab(colour, eye) - lab(other, eye))) for eye in EYES)


def lab(colour: str, eye: np.ndarray) -> np.ndarray:
    """A colour as an eye sees it, in CIE L*a*b*."""
    rgb = np.array(matplotlib.colors.to_rgb(colour))
    linear = np.clip(eye @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4), 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = (part / white for part, white in zip(to_xyz @ linear, (0.95047, 1.0, 1.08883), strict=True))
    fx, fy, fz = (np.cbrt(part) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])
