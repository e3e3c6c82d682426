"""Conversion of names, values and text to TeX: conventional notation, with all commands escaped."""

import pytest

from cases import merge_cases
from minigrad_viz.pictures.tex import escape_tex, format_math, format_name


@merge_cases
@pytest.mark.parametrize(
    ("called", "written"),
    [
        ("w", "w"),
        ("w1", "w_{1}"),
        ("w_1", "w_{1}"),
        ("w₁₂", "w_{12}"),
        ("W_xh", r"W_{\mathrm{xh}}"),
        ("x_i", "x_{i}"),
        ("β", r"\beta"),
        ("Ω₀", r"\Omega_{0}"),
        ("w′", "w'"),
        ("loss", r"\mathrm{loss}"),
        ("loss_total", r"\mathrm{loss}_{\mathrm{total}}"),
        ("w[0]", r"\text{w[0]}"),
        ("50%", r"\text{50\%}"),
        ("a_b_c", r"\text{a\_b\_c}"),
    ],
)
def test_names_follow_mathematical_conventions(called, written):
    assert format_name(called) == written


def test_values_have_powers_of_ten():
    assert [format_math(x) for x in ("−1.5e−07", "1.2e+08", "∞", "2.0 × (−3.0) = −6.0", "NaN", "blocked")] == [
        r"-1.5\cdot 10^{-7}",
        r"1.2\cdot 10^{8}",
        r"\infty",
        r"2.0 \times (-3.0) = -6.0",
        r"\text{NaN}",
        r"\text{blocked}",
    ]


def test_unsupported_letters_lose_accents_or_become_question_marks():
    assert escape_tex("Łódź") == "?ódz"
    assert escape_tex("重み") == "??"
    assert escape_tex("\\~^") == r"\textbackslash{}\textasciitilde{}\textasciicircum{}"
