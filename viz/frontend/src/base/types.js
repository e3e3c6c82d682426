/**
 * The types that the parts of the player share, for `import("./types.js").Graph` in JSDoc. No code.
 *
 * A node and an edge are integers: their places in the trace. So are blocks, ops, formulas and arrays; -1 is none.
 */

/**
 * An array of numbers as the trace keeps it: a picture of `rows` × `cols` cells, row by row, leading dimensions
 * stacked below each other. Where `step` is [r, c], only every r-th row and c-th column was kept. The rest is of the
 * whole array.
 * @typedef {object} Cells
 * @property {number[]} shape
 * @property {string} dtype
 * @property {number} size how many numbers the whole array has
 * @property {Float64Array} cells
 * @property {number} rows of `cells`
 * @property {number} cols of `cells`
 * @property {[number, number] | null} step
 * @property {number | null} min of the finite numbers, as max, mean and std; null where there are none
 * @property {number | null} max
 * @property {number | null} mean
 * @property {number | null} std
 * @property {number[]} hist counts in bins of the same width from min to max
 * @property {number} nan how many are NaN
 * @property {number} inf how many are infinite
 */

/** A number, or an array of them. @typedef {number | Cells} Quantity */

/**
 * What a node that holds a tensor has beside its numbers. `loops` are the places in `graph.programs` of that which
 * computes it, and for each operand of its product (-1: none), or why none can.
 * @typedef {{shape: number[], dtype: string, loops: number[] | string | null}} TensorInfo
 */

/** @typedef {"graph" | "scope" | "fold" | "run"} BlockKind */

/**
 * A part of the graph. Block 0 is the whole; a block comes after its outer one; `count` is for folds, `about` for modules.
 * @typedef {{name: string, outer: number, kind: BlockKind, count: number | null, about: string | null}} Block
 */

/**
 * An operation. `js` computes it from operands a, b, …, `rules` its local derivatives from g, y and operands;
 * where `js` is null, `why` says why it cannot be computed again here.
 * @typedef {object} OpInfo
 * @property {string} name
 * @property {string | null} formula LaTeX
 * @property {string | null} js
 * @property {(string | null)[]} rules
 * @property {string | null} why
 */

/** A formula with placeholders for names or numbers. @typedef {{text: string, mathml: string, latex: string}} Template */

/**
 * An alarm or remark: where it begins (-1: nowhere), and all that it concerns.
 * @typedef {{kind: string, node: number, text: string, nodes: number[], edges: number[]}} Note
 */

/**
 * One backward pass: its events in order. Item k: over edge[k] went upstream[k] * local = contribution[k], and the
 * operand of the edge then had total[k] *in this run*. What is not known is null.
 * @typedef {object} Run
 * @property {number} root
 * @property {Int32Array} edge
 * @property {(Quantity | null)[]} upstream
 * @property {(Quantity | null)[]} contribution
 * @property {(Quantity | null)[]} total
 */

/**
 * The numbers on a graph: those of the trace, or what the engine computed from changed leaves. What is not known is null.
 * @typedef {object} Numbers
 * @property {(Quantity | null)[]} value of each node
 * @property {(edge: number) => number | null} local derivative; null for tensors too
 * @property {Run[]} runs as many as the trace has passes, over the same edges
 */

/**
 * A decoded trace: what does not change while it is played. Edges into node i are start[i] … start[i + 1] - 1, in slot
 * order; edges that leave it are `outs(i)`, ascending.
 * @typedef {object} Graph
 * @property {number} count of nodes
 * @property {number} edgeCount
 * @property {string} sentence what is drawn
 * @property {string} how of a recorded step, how it is run: then nodes are calls in order, and few numbers are known
 * @property {number[]} outputs
 * @property {Uint8Array} kind LEAF, OP, CONSTANT or BROKEN, of model/trace.js
 * @property {Int32Array} op -1: none
 * @property {(string | null)[]} names
 * @property {Map<number, string>} short what parameters are called in the block of their module
 * @property {Uint8Array} state NONE, FINAL, BLOCKED or FREED, of model/trace.js: when the trace was made
 * @property {Int32Array} block
 * @property {Map<number, string>} lines
 * @property {Set<number>} stale
 * @property {Map<number, TensorInfo>} tensors
 * @property {Map<number, Record<string, string>>} attrs
 * @property {Int32Array} start
 * @property {Int32Array} operand of each edge
 * @property {Int32Array} result of each edge
 * @property {Int32Array} slot of each edge
 * @property {Uint8Array} flows 1 where a gradient goes back over the edge
 * @property {(node: number) => Int32Array} outs
 * @property {Int32Array} nodeFormula -1: none
 * @property {Int32Array} edgeFormula -1: none
 * @property {Block[]} blocks
 * @property {OpInfo[]} ops
 * @property {Template[]} formulas
 * @property {Cells[]} arrays
 * @property {Record<string, any>[]} programs see engine/loops.js
 * @property {Note[]} notes
 * @property {Numbers} numbers
 * @property {unknown[]} tours as in the trace; see model/tours.js
 * @property {(node: number, limit?: number) => string} title what to call a node, in at most `limit` (24) characters
 */

/** @typedef {"start" | "forward" | "seed" | "edge"} MomentKind */

/** How far one step goes. @typedef {"edge" | "op"} StepSize */

/**
 * The moments of a run in order, at positions 0 … last: the start, where only leaves and constants are known; one for
 * each op, in tape order; the seed, where the gradient of the root is 1; one for each event of the backward pass.
 * @typedef {object} Timeline
 * @property {number} run place in `numbers.runs`; -1: there is no backward pass
 * @property {number} root of the run, or -1
 * @property {number} length how many positions there are: last + 1
 * @property {number} last the last position
 * @property {number} forward how many ops are computed, so also the position of the last of them
 * @property {number} seed the position of the seed; -1 without a backward pass
 * @property {(position: number) => MomentKind} kindAt
 * @property {(position: number) => number} nodeAt the node computed, the root, the operand that receives, or -1
 * @property {(position: number) => number} edgeAt -1 where no gradient moves
 * @property {(position: number, size: StepSize) => number} next the position after one step; the last one stays
 * @property {(position: number, size: StepSize) => number} previous the position before; 0 stays
 * @property {(node: number) => number} computedAt where the node's value becomes known
 * @property {(node: number) => number} finalAt where its gradient becomes final; -1: never in this run
 * @property {(edge: number) => number} passedAt where the gradient goes back over the edge; -1: never in this run
 * @property {(node: number) => number} contributions how many its gradient gets in this run
 * @property {(node: number) => Int32Array} arrivals the events, by their places in the run, that bring them; ascending
 */

/**
 * The gradient of a node at a position: `met` of `of` contributions of this run have arrived, `value` is their sum
 * (1 for the root, which needs none; null before the first).
 * @typedef {object} Gradient
 * @property {"none" | "partial" | "final" | "blocked"} state
 * @property {number} met
 * @property {number} of
 * @property {Quantity | null} value
 */

/**
 * What happens at a position. For "forward" `node` is computed; for "seed" it is the root, and `total` its gradient;
 * for "edge" it receives upstream · local = contribution over `edge`, and before + contribution = total (before: null
 * the first time). A tensor's local derivative is no number: null.
 * @typedef {object} Moment
 * @property {MomentKind} kind
 * @property {number} node -1 at the start
 * @property {number} edge -1 but for "edge"
 * @property {Quantity | null} value of the node, at "forward"
 * @property {Quantity | null} upstream
 * @property {number | null} local
 * @property {Quantity | null} contribution
 * @property {Quantity | null} before
 * @property {Quantity | null} total
 * @property {number} met the how-many-th contribution this is
 * @property {number} of how many there are
 */

/**
 * A position on a timeline, and the state of the graph there.
 * @typedef {object} Playback
 * @property {Graph} graph
 * @property {Timeline} timeline
 * @property {number} position read; `seek` moves it
 * @property {Numbers} numbers may be replaced: what-if. What is drawn must then be drawn anew
 * @property {(node: number) => boolean} unable while what-if is on, whether a node cannot be computed again: it is grey
 * @property {(position: number) => Changed} seek
 * @property {(node: number) => boolean} known whether the node's value is computed at this position
 * @property {(node: number) => Quantity | null} value null while not known
 * @property {(node: number) => Gradient} gradient
 * @property {(edge: number) => "idle" | "active" | "done"} edgeState "active": into the node that is computed now, or
 *   the gradient goes over it now; "done": the gradient has gone over it
 * @property {(position?: number) => Moment} moment at a position; the present one if none is given
 * @property {() => string} sentence for aria-live
 */

/** What a `seek` changed; what was or is active counts. @typedef {{nodes: number[], edges: number[]}} Changed */

/**
 * @typedef {"op" | "name" | "scope" | "gradient-above" | "not-finite" | "second-contribution"} BreakpointKind
 * @typedef {{kind: BreakpointKind, value: string | number | null}} BreakpointSpec
 */

/**
 * A station of a tour: `expand` are blocks to open, with those around them, `select` is "n12", "b3" or null.
 * @typedef {{position: number, text: string, expand: number[], select: string | null}} Station
 */

/** @typedef {{verdict: "right" | "sign" | "factor" | "accumulation" | "wrong", text: string}} Diagnosis */

export {};
