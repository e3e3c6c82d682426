"""Show a player as a widget in a page without Jupyter; a JavaScript model replaces the Python object."""

from minigrad_viz.pictures.frontend import module

_SHOW = """
async ([source, state, views]) => {
  const listeners = {};
  const model = {
    moves: [],
    get: (key) => state[key],
    set(key, value) {
      if (JSON.stringify(state[key]) === JSON.stringify(value)) return;
      state[key] = value;
      if (key === "position") model.moves.push([performance.now(), value]);
      for (const hear of [...(listeners[key] ?? [])]) hear();
    },
    save_changes() {},
    on: (event, hear) => (listeners[event.slice(7)] ??= []).push(hear),
    off: (event, hear) => {
      listeners[event.slice(7)] = listeners[event.slice(7)].filter((one) => one !== hear);
    },
  };
  const widget = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  for (let i = 0; i < views; i += 1) {
    const el = document.createElement("div");
    document.body.append(el);
    await widget.default.render({ model, el });
  }
  globalThis.model = model;
}
"""


def show_widget(page, player, views=1):
    """Put `player` into the page in `views` views; its model is ``model`` there, its positions ``model.moves``."""
    state = player.get_state(
        [name for name in player.traits(sync=True) if not name.startswith("_") and name != "layout"]
    )
    page.set_content("<!doctype html><title>A page</title>")
    state |= {"trace_packed": None, "trace_text": player.trace.json(full=True)}
    page.evaluate(_SHOW, [module(), state, views])
