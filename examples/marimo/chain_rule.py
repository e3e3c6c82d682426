"""A notebook for marimo: ``marimo edit examples/marimo/chain_rule.py``, or ``marimo run`` for the page alone."""

import marimo

__generated_with = "0.25.2"
app = marimo.App()


@app.cell
def _():
    import marimo as mo

    import minigrad as mg
    from minigrad_viz import draw, step

    return draw, mg, mo, step


@app.cell
def _(mo):
    mo.md(r"""
    # The chain rule

    Move $a$: marimo computes the graph again, with its gradients.
    """)
    return


@app.cell
def _(mo):
    a_slider = mo.ui.slider(-3, 3, step=0.5, value=2, label="$a$", show_value=True)
    a_slider
    return (a_slider,)


@app.cell
def _(a_slider, draw, mg):
    a, b = mg.Value(a_slider.value), mg.Value(-3.0)
    y = a * b + a
    y.backward()
    draw(y)
    return (y,)


@app.cell
def _(mo):
    mo.md(r"""
    Two operations forward, the seed $\partial y / \partial y = 1$, and four products backward: seven steps.
    """)
    return


@app.cell
def _(mo):
    position = mo.ui.slider(0, 7, label="step", show_value=True)
    position
    return (position,)


@app.cell
def _(position, step, y):
    step(y, position=position.value)
    return


@app.cell
def _(mo):
    mo.md(r"""
    The other way round, a cell follows a player. Step through this one:
    """)
    return


@app.cell
def _(mo, step, y):
    player = mo.ui.anywidget(step(y, granularity="op"))
    player
    return (player,)


@app.cell
def _(draw, mo, player, y):
    place = player.value["position"]
    mo.vstack([mo.md(f"Step {place} of the player above:"), draw(y, step=place)])
    return


if __name__ == "__main__":
    app.run()
