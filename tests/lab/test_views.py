"""Pictures and widgets: what a cell shows, once, and in which order."""

import numpy as np
import pytest
from IPython.utils.capture import capture_output
from matplotlib import pyplot as plt
from PIL import Image

from inferlab.lab import filmstrip, pictures_over_curve, step_slider
from inferlab.lab.plots.style import alt_text


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
        {901: picture(0), 1: picture(200)}, [901, 401, 1], [1.2, 0.6, 0.0], title="t", xlabel="timestep t",
        ylabel="error"
    )
    curve = fig.axes[-1]
    left, right = curve.get_xlim()
    assert left > right
    assert list(curve.lines[1].get_xdata()) == [901.0, 1.0]
    assert not curve.lines[1].get_clip_on(), "the ring of a point at zero is drawn whole"
    assert [label.get_text() for label in curve.get_legend().get_texts()] == ["the pictures above"]
    assert [axis.get_title() for axis in fig.axes[:-1]] == ["timestep 901", "timestep 1"]


@pytest.fixture
def shown_by(shell):
    """What a notebook is sent when something is the value of a cell."""
    def show(value):
        shell.user_ns["value"] = value
        with capture_output() as captured:
            shell.run_cell("value")
        return [output.data for output in captured.outputs]

    return show


def test_a_figure_is_one_picture_with_its_words_on_a_white_card(shown_by):
    (data,) = shown_by(filmstrip([picture(0), picture(200)], ["before", "after"], "It got <lighter>"))
    assert data["text/plain"] == "It got <lighter>; before; after"
    assert 'alt="It got &lt;lighter&gt;; before; after"' in data["text/html"]
    assert data["text/html"].count("<img") == 1 and "background:#fff" in data["text/html"]
    assert "image/png" not in data, "a second copy"


def test_the_words_of_a_curve_say_what_it_measures():
    fig = pictures_over_curve({9: picture(0)}, [9, 1], [1, 0], title="Less noise", xlabel="timestep t",
                              ylabel="error")
    assert alt_text(fig) == "Less noise; timestep 9; error over timestep t"


def test_a_step_slider_shows_every_step_without_a_kernel_and_without_script():
    page = step_slider([picture(10), picture(20), picture(30)], ["a", "b", "<c>"])._repr_html_()
    assert page.count("<img alt=") == 3 and "<figcaption>&lt;c&gt;</figcaption>" in page
    assert 'alt="step 3 of 3, &lt;c&gt;"' in page and " hidden" not in page.replace(".hidden", "")
    assert "<label>" in page and "<script" not in page and "widget" not in page


@pytest.mark.parametrize("view", [filmstrip, step_slider])
def test_each_picture_needs_a_label(view):
    with pytest.raises(ValueError, match="label"):
        view([picture(0)], ["a", "b"])


def test_a_picture_must_belong_to_a_point():
    with pytest.raises(ValueError, match="x value"):
        pictures_over_curve({7: picture(0)}, [1, 2], [0, 1], title="", xlabel="x", ylabel="y")


def test_a_compact_svg_keeps_its_scales_and_its_numbers_to_a_hundredth_and_names_its_font_once():
    from inferlab.lab.plots.style import compact_svg

    word = "<text style=\"font-size: 10px{}; text-anchor: middle\">word</text>"
    style = '<style type="text/css">*{{{}stroke-linejoin: round}}</style>'
    drawn = ("<svg>\n <metadata>\n  x\n </metadata>" + style.format("")
             + word.format("; font-family: 'DejaVu Sans', Arial"))
    font = "font-family: 'DejaVu Sans', Verdana, sans-serif; "
    assert compact_svg(drawn) == "<svg>" + style.format(font) + word.format("")
    text = ('<g transform="translate(127.424976 -0.125) scale(0.015625 -0.015625)">\n    <path d="M 1.0 2 \n'
            'L 3.456789 7.999999 \n"/>\n')
    assert compact_svg(text) == ('<g transform="translate(127.42 -0.12) scale(0.015625 -0.015625)">\n<path '
                                 'd="M1.0 2L3.46 8"/>\n')


def test_a_compact_svg_keeps_the_ids_that_something_refers_to_and_its_words():
    from inferlab.lab.plots.style import compact_svg

    text = ('<g id="axes_1"><clipPath id="p1"/><path clip-path="url(#p1)" d="M 1 -2 z"/>'
            '<text x="1" transform="rotate(-0 1 2)">L 4 z</text></g>')
    assert compact_svg(text) == ('<g><clipPath id="p1"/><path clip-path="url(#p1)" d="M1 -2z"/>'
                                 '<text x="1">L 4 z</text></g>')
