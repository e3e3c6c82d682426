/** The player's state, without elements. */
import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { checkAnswer, questionPosition, setPredicting } from "../src/panels/prediction.js";
import * as act from "../src/panels/session.js";
import { decode } from "../src/model/trace.js";
import { firstLeaf, scalarLeaves, sliderRange } from "../src/panels/whatif.js";
import { randomTrace, scalarTrace } from "./helpers.js";

function product(options) {
  const data = scalarTrace((t) => {
    const a = t.leaf("a", 2);
    return t.add(t.mul(a, t.leaf("b", -3), "c"), a, "y");
  });
  const s = act.createSession(decode(data), options);
  const heard = [];
  s.listeners.add((what) => heard.push(what));
  return { s, heard };
}

/** Advance the clock by a minute. */
function wait() {
  for (let second = 0; second < 60; second += 1) mock.timers.tick(1000);
}

test("player starts at the end of the forward pass, or at a given position", () => {
  assert.equal(product().s.playback.position, 2);
  assert.equal(product({ position: 4 }).s.playback.position, 4);
  assert.equal(product({ position: 400 }).s.playback.position, 7);
});

test("a step by an operation includes all its edges", () => {
  const { s } = product({ position: 3 });
  act.stepBy(s, 1, "op");
  assert.equal(s.playback.position, 5);
  act.stepBy(s, -1, "op");
  assert.equal(s.playback.position, 3);
  act.stepBy(s, 1, "edge");
  assert.equal(s.playback.position, 4);
});

test("an invalid position is clamped", () => {
  const { s, heard } = product();
  act.moveTo(s, -5);
  assert.equal(s.playback.position, 0);
  act.moveTo(s, NaN);
  assert.equal(s.playback.position, 0);
  assert.deepEqual(heard, ["moved"]);
});

test("linked players keep the pace of one", (context) => {
  context.after(() => mock.timers.reset());
  mock.timers.enable({ apis: ["setTimeout"] });
  const [one, other] = [product({ position: 0 }).s, product({ position: 0 }).s];
  one.listeners.add((what) => what === "moved" && act.moveTo(other, one.playback.position));
  other.listeners.add((what) => what === "moved" && act.moveTo(one, other.playback.position));
  act.setPlaying(one, true);
  act.setPlaying(other, true);
  mock.timers.tick(350);
  for (let position = 1; position < 5; position += 1) {
    assert.equal(one.playback.position, position);
    assert.equal(other.playback.position, position);
    mock.timers.tick(799);
    assert.equal(other.playback.position, position);
    mock.timers.tick(1);
  }
});

/** Return how long playing takes from start to end, in milliseconds, and the number of positions visited. */
function played(s) {
  let [time, moves] = [0, 0];
  s.listeners.add((what) => (moves += Number(what === "moved")));
  act.setPlaying(s, true);
  for (; s.playing; time += 1) mock.timers.tick(1);
  return { time, moves };
}

test("playing takes eight seconds for a few nodes, and at most a minute", (context) => {
  context.after(() => mock.timers.reset());
  mock.timers.enable({ apis: ["setTimeout"] });
  const six = scalarTrace((t) => t.tanh(t.add(t.mul(t.leaf("w", -2), t.leaf("x", 3)), t.leaf("b", 6)), "y"));
  const few = played(act.createSession(decode(six), { position: 0 }));
  assert.ok(few.time > 5000 && few.time <= 8000, `${few.time}`);
  for (const size of [100, 300, 3000]) {
    const { time, moves } = played(act.createSession(decode(randomTrace(size, size)), { position: 0 }));
    assert.ok(time > 30_000 && time <= 60_000, `${size}: ${time}`);
    assert.ok(moves <= 240, `${moves}`);
  }
});

test("playing a long history skips through a closed block", (context) => {
  context.after(() => mock.timers.reset());
  mock.timers.enable({ apis: ["setTimeout"] });
  const data = scalarTrace((t) => {
    let x = t.leaf("x", 0.5);
    for (let k = 0; k < 5; k += 1) t.scope(`layer ${k}`, () => { for (let j = 0; j < 200; j += 1) x = t.tanh(x); });
    return t.mul(x, t.leaf("w", 2), "y");
  });
  const s = act.createSession(decode(data), { position: 0, expanded: [0] });
  const { moves } = played(s);
  assert.ok(moves >= 11 && moves < 20, `${moves}`);
});

test("playing stops at a breakpoint and reports it", (context) => {
  context.after(() => mock.timers.reset());
  mock.timers.enable({ apis: ["setTimeout"] });
  const { s } = product({ position: 0 });
  act.setBreakpoints(s, [{ kind: "second-contribution", value: null }]);
  act.setPlaying(s, true);
  wait();
  assert.equal(s.playing, false);
  const moment = s.playback.moment();
  assert.deepEqual([moment.met, moment.of, s.graph.title(moment.node)], [2, 2, "a"]);
  assert.match(s.stopMessage, /second contribution/);
  assert.deepEqual(act.breakpointPositions(s), [s.playback.position]);
});

test("playing without breakpoints continues to the end, then restarts", (context) => {
  context.after(() => mock.timers.reset());
  mock.timers.enable({ apis: ["setTimeout"] });
  const { s } = product();
  act.setPlaying(s, true);
  wait();
  assert.equal(s.playback.position, act.lastPosition(s));
  act.setPlaying(s, true);
  assert.equal(s.playback.position, 0);
  act.setPlaying(s, false);
});

test("a changed leaf is propagated forward and backward, and can be reset", () => {
  const { s } = product();
  act.setOverride(s, 0, 5);
  assert.equal(s.playback.numbers.value[s.root], -10);
  act.moveTo(s, act.lastPosition(s));
  assert.equal(s.playback.gradient(1).value, 5);
  act.setOverride(s, 0, null);
  assert.equal(s.playback.numbers, s.recorded);
});

test("selecting a node inside a closed block opens it", () => {
  const data = scalarTrace((t) => t.scope("layer", () => t.mul(t.leaf("a", 2), t.leaf("b", 3), "y")));
  const s = act.createSession(decode(data), { expanded: [] });
  act.select(s, "n0");
  assert.ok(s.expanded.has(1));
  assert.equal(act.selectedNode(s), 0);
});

test("predict mode does not go beyond the last answer", () => {
  const { s } = product({ position: 0 });
  setPredicting(s, true);
  assert.equal(s.playback.position, s.timeline.seed);
  act.moveTo(s, act.lastPosition(s));
  assert.equal(s.playback.position, s.timeline.seed);
  const first = questionPosition(s);
  assert.equal(checkAnswer(s, 17).verdict === "right", false);
  assert.equal(s.playback.position, first - 1);
  assert.equal(checkAnswer(s, s.playback.moment(first).total).verdict, "right");
  assert.equal(s.playback.position, first);
  assert.deepEqual([s.score.right, s.score.asked], [0, 1]);
  checkAnswer(s, s.playback.moment(questionPosition(s)).total);
  assert.deepEqual([s.score.right, s.score.asked], [1, 2]);
  setPredicting(s, false);
  act.moveTo(s, act.lastPosition(s));
  assert.equal(s.playback.position, act.lastPosition(s));
});

test("what-if starts with the selected leaf, or that of the largest gradient", () => {
  const s = act.createSession(decode(scalarTrace((t) => t.mul(t.leaf("p", 5), t.leaf("q", -0.1), "y"))));
  const leaves = scalarLeaves(s);
  assert.equal(s.graph.title(firstLeaf(s, leaves)), "q"); // ∂y/∂p = −0.1, ∂y/∂q = 5
  act.select(s, "n0");
  assert.equal(s.graph.title(firstLeaf(s, leaves)), "p");
});

test("the range of a slider has round bounds around the number", () => {
  assert.deepEqual(sliderRange(-3), [-9, 3, 0.1]);
  assert.deepEqual(sliderRange(0), [-2, 2, 0.1]);
  for (const x of [1e-9, 0.3, 7, 123, -4e8, Infinity, NaN]) {
    const [least, most, step] = sliderRange(x);
    assert.ok(least < most && step > 0 && Number.isFinite(most - least));
    if (Number.isFinite(x)) assert.ok(least <= x && x <= most);
  }
});

test("only scalar leaves have sliders", () => {
  const data = scalarTrace((t) => t.mul(t.leaf("a", 2), t.constant(3), "y"));
  assert.deepEqual(scalarLeaves(act.createSession(decode(data))), [0]);
});

test("the user may step back while predicting, and answers the same question", () => {
  const { s } = product({ position: 0 });
  setPredicting(s, true);
  const question = questionPosition(s);
  act.moveTo(s, 0);
  assert.equal(questionPosition(s), question);
  assert.equal(checkAnswer(s, s.playback.moment(question).total).verdict, "right");
  assert.equal(s.playback.position, question);
});
