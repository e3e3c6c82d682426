/** The examples of the playground. */

/** @type {{name: string, text: string, numbers: Record<string, number>}[]} */
export const EXAMPLES = [
  {
    name: "Sums, a product and tanh",
    text: "(a + b)*c + tanh(d)",
    numbers: { a: 2, b: -3, c: 0.5, d: 1 },
  },
  {
    name: "A neuron",
    text: "sigmoid(w*x + b)",
    numbers: { w: -2, x: 3, b: 6 },
  },
  {
    name: "The formula of lesson 2",
    text: "s = a + b\nt = c + d\np = s*t\nq = e*f\nr = p + q\ny = r - g",
    numbers: { a: 2, b: 3, c: 4, d: 5, e: 6, f: 7, g: 8 },
  },
  {
    name: "A sum of squares",
    text: "r_1 = w*1 + b - 2\nr_2 = w*2 + b - 3\nr_3 = w*3 + b - 5\nloss = r_1**2 + r_2**2 + r_3**2",
    numbers: { w: 1, b: 0.5 },
  },
  {
    name: "Cross entropy of a sigmoid",
    text: "p = sigmoid(w*x + b)\nloss = -(t*log(p) + (1 - t)*log(1 - p))",
    numbers: { w: 0.5, x: 2, b: -1.5, t: 1 },
  },
  {
    name: "A value that is used again",
    text: "b = a*a\ny = b*b + a",
    numbers: { a: 1.5 },
  },
  {
    name: "A function with kinks",
    text: "relu(x) + abs(x - 1) - max(x, k)",
    numbers: { x: 0.5, k: 2 },
  },
  {
    name: "A division by zero",
    text: "u = a - b\ny = c/u",
    numbers: { a: 2, b: 2, c: 1 },
  },
];
