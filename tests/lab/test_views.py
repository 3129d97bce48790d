"""Pictures and widgets: what a cell shows, once, and in which order."""

import ipywidgets
import numpy as np
import pytest
from matplotlib import pyplot as plt
from PIL import Image

from inferlab.lab import filmstrip, pictures_over_curve, step_slider


def picture(value, side=16):
    return Image.fromarray(np.full((side, side, 3), value, dtype=np.uint8))


def test_a_filmstrip_has_one_labelled_axis_for_each_picture_and_leaves_no_open_figure():
    open_before = plt.get_fignums()
    fig = filmstrip([picture(0), picture(200)], ["before", "after"], "It got lighter")
    assert [axis.get_title() for axis in fig.axes] == ["before", "after"]
    assert fig.get_suptitle() == "It got lighter"
    assert plt.get_fignums() == open_before


def test_a_curve_runs_from_the_first_point_on_the_left_and_marks_its_pictures():
    fig = pictures_over_curve(
        {901: picture(0), 1: picture(200)}, [901, 401, 1], [1.2, 0.6, 0.0], title="t", xlabel="timestep t", ylabel="error"
    )
    curve = fig.axes[-1]
    left, right = curve.get_xlim()
    assert left > right
    assert list(curve.lines[1].get_xdata()) == [901.0, 1.0]
    assert [axis.get_title() for axis in fig.axes[:-1]] == ["timestep 901", "timestep 1"]


def test_a_slider_has_a_page_for_each_step_and_is_linked_in_the_browser():
    view = step_slider([picture(10), picture(20), picture(30)], ["a", "b", "c"])
    slider, stack = view.children
    assert (slider.min, slider.max, len(stack.children)) == (0, 2, 3)
    assert all(isinstance(page.children[1], ipywidgets.Image) for page in stack.children)
    assert [page.children[0].value for page in stack.children] == ["a", "b", "c"]


@pytest.mark.parametrize("view", [filmstrip, step_slider])
def test_each_picture_needs_a_label(view):
    with pytest.raises(ValueError, match="label"):
        view([picture(0)], ["a", "b"])


def test_a_picture_must_belong_to_a_point():
    with pytest.raises(ValueError, match="x value"):
        pictures_over_curve({7: picture(0)}, [1, 2], [0, 1], title="", xlabel="x", ylabel="y")


def test_a_compact_svg_keeps_its_scales_and_its_numbers_to_a_hundredth():
    from inferlab.lab.plots import compact_svg

    text = '<g transform="translate(127.424976 -0.125) scale(0.015625 -0.015625)">\n    <path d="M 1.0 2 \nL 3.456789 7.999999 \n"/>\n'
    assert compact_svg(text) == '<g transform="translate(127.42 -0.12) scale(0.015625 -0.015625)">\n<path d="M 1.0 2\nL 3.46 8\n"/>\n'
