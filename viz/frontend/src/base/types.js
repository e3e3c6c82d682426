/**
 * Types shared by the parts of the player, for `import("./types.js").Graph` in JSDoc. No code.
 *
 * Nodes and edges are integers, their indices in the trace. So are blocks, ops, formulas and arrays; -1 is none.
 */

/**
 * An array in a trace: a grid of `rows` × `cols` cells in row-major order, with leading dimensions stacked vertically.
 * If `step` is [r, c], the grid holds only every r-th row and c-th column. The statistics cover the full array.
 * @typedef {object} Cells
 * @property {number[]} shape
 * @property {string} dtype
 * @property {number} size number of elements of the full array
 * @property {Float64Array} cells
 * @property {number} rows of `cells`
 * @property {number} cols of `cells`
 * @property {[number, number] | null} step
 * @property {number | null} min over the finite elements, as max, mean and std; null if there are none
 * @property {number | null} max
 * @property {number | null} mean
 * @property {number | null} std
 * @property {number[]} hist counts in equal-width bins from min to max
 * @property {number} nan number of NaN elements
 * @property {number} inf number of infinite elements
 */

/** A scalar or an array. @typedef {number | Cells} Quantity */

/**
 * The shape and dtype of a tensor node. `loops` are the indices in `graph.programs` of the program that computes it and
 * of those that compute the VJP of each operand (-1: none), or the reason why there are none.
 * @typedef {{shape: number[], dtype: string, loops: number[] | string | null}} TensorInfo
 */

/** @typedef {"graph" | "scope" | "fold" | "run"} BlockKind */

/**
 * A block of the graph. Block 0 is the entire graph; a block comes after its outer one. `count` is for folds, `about`
 * for modules.
 * @typedef {{name: string, outer: number, kind: BlockKind, count: number | null, about: string | null}} Block
 */

/**
 * An operation. `js` computes it from its operands a, b, …; `rules` compute its VJPs from g, y and the operands. If
 * `js` is null, `why` says why the player cannot recompute it.
 * @typedef {object} OpInfo
 * @property {string} name
 * @property {string | null} formula LaTeX
 * @property {string | null} js
 * @property {(string | null)[]} rules
 * @property {string | null} why
 */

/**
 * A formula with placeholders for names or numbers.
 * @typedef {{text: string, mathml: string, latex: string}} Template
 */

/**
 * An alarm or remark: the node where it originates (-1: none), and all nodes and edges that it affects.
 * @typedef {{kind: string, node: number, text: string, nodes: number[], edges: number[]}} Note
 */

/**
 * One backward pass: its events in order. Event k computes upstream[k] * local = contribution[k] over edge[k]; total[k]
 * is the gradient of that edge's operand after it, *in this run*. Unknown values are null.
 * @typedef {object} Run
 * @property {number} root
 * @property {Int32Array} edge
 * @property {(Quantity | null)[]} upstream
 * @property {(Quantity | null)[]} contribution
 * @property {(Quantity | null)[]} total
 */

/**
 * The values of a graph, from the trace or recomputed from changed leaves. Unknown ones are null.
 * @typedef {object} Numbers
 * @property {(Quantity | null)[]} value of each node
 * @property {(edge: number) => number | null} local derivative; null for tensors too
 * @property {Run[]} runs as many as the trace has passes, over the same edges
 */

/**
 * A decoded trace: everything that does not change during playback. Edges into node i are start[i] … start[i + 1] - 1,
 * in slot order; edges that leave it are `outs(i)`, ascending.
 * @typedef {object} Graph
 * @property {number} count number of nodes
 * @property {number} edgeCount
 * @property {string} sentence description of the graph
 * @property {string} runMode for a captured step, how it runs: nodes are then calls in order, and few values are known
 * @property {number[]} outputs
 * @property {Uint8Array} kind LEAF, OP, CONSTANT or BROKEN, of model/trace.js
 * @property {Int32Array} op -1: none
 * @property {(string | null)[]} names
 * @property {Map<number, string>} shortNames names of parameters within their module's block
 * @property {Uint8Array} state NONE, FINAL, BLOCKED or FREED, of model/trace.js, at the time of the trace
 * @property {Int32Array} block
 * @property {Map<number, string>} lines
 * @property {Set<number>} stale
 * @property {Map<number, TensorInfo>} tensors
 * @property {Map<number, Record<string, string>>} attrs
 * @property {Int32Array} start
 * @property {Int32Array} operand of each edge
 * @property {Int32Array} result of each edge
 * @property {Int32Array} slot of each edge
 * @property {Uint8Array} flows 1 if a gradient flows back over the edge
 * @property {(node: number) => Int32Array} outgoing
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
 * @property {(node: number, limit?: number) => string} title name of a node in at most `limit` (24) characters
 */

/** @typedef {"start" | "forward" | "seed" | "edge"} MomentKind */

/** The length of one step. @typedef {"edge" | "op"} StepSize */

/**
 * The moments of a run in order, at positions 0 … last: the start, where only leaves and constants are known; one for
 * each op, in tape order; the seed, where the gradient of the root is 1; one for each event of the backward pass.
 * @typedef {object} Timeline
 * @property {number} run index in `numbers.runs`; -1: no backward pass
 * @property {number} root of the run, or -1
 * @property {number} length number of positions: last + 1
 * @property {number} last the last position
 * @property {number} forward number of ops, which is also the position of the last one
 * @property {number} seed position of the seed; -1 without a backward pass
 * @property {(position: number) => MomentKind} kindAt
 * @property {(position: number) => number} nodeAt the node computed, the root, the operand that receives, or -1
 * @property {(position: number) => number} edgeAt -1 if no gradient moves
 * @property {(position: number, size: StepSize) => number} next the position one step later, at most `last`
 * @property {(position: number, size: StepSize) => number} previous the position one step earlier, at least 0
 * @property {(node: number) => number} computedAt position where the node's value is computed
 * @property {(node: number) => number} finalAt position where its gradient becomes final; -1: never in this run
 * @property {(edge: number) => number} passedAt position where a gradient flows over the edge; -1: never in this run
 * @property {(node: number) => number} contributions number of contributions to its gradient in this run
 * @property {(node: number) => Int32Array} arrivals the indices of their events in the run, ascending
 */

/**
 * The gradient of a node at a position: `met` of `of` contributions of this run have arrived; `value` is their sum (1
 * for the root, which needs none; null before the first).
 * @typedef {object} Gradient
 * @property {"none" | "partial" | "final" | "blocked"} state
 * @property {number} met
 * @property {number} of
 * @property {Quantity | null} value
 */

/**
 * The event at a position. For "forward" `node` is computed; for "seed" it is the root, and `total` its gradient; for
 * "edge" it receives upstream · local = contribution over `edge`, and before + contribution = total (before: null the
 * first time). For tensors `local` is null.
 * @typedef {object} Moment
 * @property {MomentKind} kind
 * @property {number} node -1 at the start
 * @property {number} edge -1 except for "edge"
 * @property {Quantity | null} value of the node, at "forward"
 * @property {Quantity | null} upstream
 * @property {number | null} local
 * @property {Quantity | null} contribution
 * @property {Quantity | null} before
 * @property {Quantity | null} total
 * @property {number} met 1-based index of this contribution
 * @property {number} of number of contributions
 */

/**
 * A position on a timeline, and the state of the graph there.
 * @typedef {object} Playback
 * @property {Graph} graph
 * @property {Timeline} timeline
 * @property {number} position read-only; `seek` moves it
 * @property {Numbers} numbers may be replaced by what-if; then redraw
 * @property {(node: number) => boolean} isUnavailable whether what-if cannot recompute a node, which is then greyed out
 * @property {(position: number) => Changed} seek
 * @property {(node: number) => boolean} isComputed whether the node's value is computed at this position
 * @property {(node: number) => Quantity | null} value null while unknown
 * @property {(node: number) => Gradient} gradient
 * @property {(edge: number) => "idle" | "active" | "done"} edgeState "active": it leads into the node being computed, or
 *   the gradient flows over it now; "done": the gradient has flowed over it
 * @property {(position?: number) => Moment} moment at a position, by default the current one
 * @property {() => string} sentence for aria-live
 */

/**
 * The nodes and edges that a `seek` changed, including those that were or are active.
 * @typedef {{nodes: number[], edges: number[]}} Changed
 */

/**
 * @typedef {"op" | "name" | "scope" | "gradient-above" | "not-finite" | "second-contribution"} BreakpointKind
 * @typedef {{kind: BreakpointKind, value: string | number | null}} BreakpointSpec
 */

/**
 * A stop of a tour: `expand` lists the blocks to open, with their ancestors; `select` is "n12", "b3" or null.
 * @typedef {{position: number, text: string, expand: number[], select: string | null}} TourStop
 */

/** @typedef {{verdict: "right" | "sign" | "factor" | "accumulation" | "wrong", text: string}} Diagnosis */

export {};
