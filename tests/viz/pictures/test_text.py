"""The exact text form."""

import minigrad as mg
from minigrad_viz import to_text


def test_text_form_of_the_seed_expression():
    a, b, c, d, e, f, g = (mg.Value(float(n), name) for n, name in enumerate("abcdefg", start=2))
    y = (a + b) * (c + d) + e * f - g
    y.backward()
    assert (
        to_text(y)
        == """\
Graph of y = 79.0: 7 leaves, 6 operations.
 #  name  made by  data  grad
 0  a     leaf      2.0   9.0
 1  b     leaf      3.0   9.0
 2  v₂    a + b     5.0   9.0
 3  c     leaf      4.0   5.0
 4  d     leaf      5.0   5.0
 5  v₅    c + d     9.0   5.0
 6  v₆    v₂ · v₅  45.0   1.0
 7  e     leaf      6.0   7.0
 8  f     leaf      7.0   6.0
 9  v₉    e · f    42.0   1.0
10  v₁₀   v₆ + v₉  87.0   1.0
11  g     leaf      8.0  -1.0
12  y     v₁₀ − g  79.0   1.0
local derivatives
  ∂v₂/∂a = 1.0
  ∂v₂/∂b = 1.0
  ∂v₅/∂c = 1.0
  ∂v₅/∂d = 1.0
  ∂v₆/∂v₂ = v₅ = 9.0
  ∂v₆/∂v₅ = v₂ = 5.0
  ∂v₉/∂e = f = 7.0
  ∂v₉/∂f = e = 6.0
  ∂v₁₀/∂v₆ = 1.0
  ∂v₁₀/∂v₉ = 1.0
  ∂y/∂v₁₀ = 1.0
  ∂y/∂g = -1.0"""
    )


def test_modified_graph_shows_formulas_without_values_and_a_note():
    a = mg.Value(3.0, "a")
    y = a * a
    a.data = 4.0
    lines = to_text(y).splitlines()
    assert lines[1].startswith("! a was assigned another value after y was computed: a · a = 4 · 4 now")
    assert lines[-2:] == ["  ∂y/∂a = a", "  ∂y/∂a = a"]


def test_text_of_more_than_sixty_nodes_omits_the_middle():
    y = mg.Value(1.0, "x")
    for _ in range(100):
        y = -y
    lines = to_text(y).splitlines()
    assert lines[2].split() == ["0", "x", "leaf", "1.0", "—"]
    assert lines[32] == "… 41 nodes left out …"
    assert lines[62].split() == ["100", "y", "−v₉₉", "1.0", "—"]


def test_wide_characters_keep_columns_aligned():
    rows = to_text(mg.Value(1.0, "重み") * 2.0).splitlines()[1:4]
    assert rows[1] == "0  重み  leaf       1.0        —"
    assert rows[2] == "1        constant   2.0  blocked"


def test_single_leaf_has_no_section_of_derivatives():
    assert to_text(mg.Value(1.0, "x")).splitlines()[1:] == [
        "#  name  made by  data  grad",
        "0  x     leaf      1.0     —",
    ]
