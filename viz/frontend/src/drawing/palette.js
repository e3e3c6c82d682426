/** Written by `make stubs` from minigrad_viz/pictures/palette.py: change that. A colour is `--mg-…`. */

export const FONT = "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif";

/** @type {Record<"light" | "dark", Record<string, string>>} */
export const PALETTE = {
  "light": {
    "page": "#fbfcfd",
    "rim": "#d5dbe4",
    "card": "#ffffff",
    "ink": "#17212c",
    "muted": "#556274",
    "line": "#7a8798",
    "forward": "#0a58a6",
    "backward": "#9a4600",
    "wash": "#fdf1e3",
    "leaf": "#44546a",
    "on-leaf": "#ffffff",
    "op": "#e8edf3",
    "on-op": "#17212c",
    "output": "#1c2937",
    "on-output": "#ffffff",
    "alarm": "#b3003c",
    "on-alarm": "#ffffff",
    "halo": "#8dbdec",
    "hot": "#c25700",
    "heat": "#f0a95e",
    "positive": "#b35000",
    "negative": "#6a1b5a",
    "mixed": "#7d6449",
    "zero": "#ffffff",
    "plus": "#1b7837",
    "minus": "#b3287e"
  },
  "dark": {
    "page": "#11161c",
    "rim": "#313c49",
    "card": "#1a212a",
    "ink": "#e9eef4",
    "muted": "#a5b1c1",
    "line": "#8b98a9",
    "forward": "#82bdf4",
    "backward": "#f5b273",
    "wash": "#33281b",
    "leaf": "#55667d",
    "on-leaf": "#ffffff",
    "op": "#2b3542",
    "on-op": "#e9eef4",
    "output": "#e9eef4",
    "on-output": "#11161c",
    "alarm": "#ff6f98",
    "on-alarm": "#11161c",
    "halo": "#2f6fae",
    "hot": "#ff9d3c",
    "heat": "#a8611d",
    "positive": "#f5a858",
    "negative": "#c266ff",
    "mixed": "#c9b08a",
    "zero": "#1a212a",
    "plus": "#62c481",
    "minus": "#f08cc8"
  }
};
