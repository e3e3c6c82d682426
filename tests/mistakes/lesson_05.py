"""Wrong answers to the exercises of lesson 5, with the expected explanations."""


def run_program(program, leaves, copy=True, **other):
    compute = {"add": lambda x, y: x + y, "mul": lambda x, y: x * y, "neg": lambda x: -x, "max": max, **other}
    values = list(leaves) if copy else leaves
    for op, *reads in program:
        values.append(compute[op](*[values[row] for row in reads]))
    return values


def back(program, values, add=True, forward=False, swapped=False):
    derivatives = {
        "add": lambda x, y: (1, 1),
        "mul": lambda x, y: (x, y) if swapped else (y, x),
        "neg": lambda x: (-1,),
    }
    gradients = [0.0] * (len(values) - 1) + [1.0]
    rows = range(len(values) - len(program), len(values))
    for row in rows if forward else reversed(rows):
        op, *reads = program[row - len(values)]
        for read, derivative in zip(reads, derivatives[op](*[values[k] for k in reads]), strict=True):
            gradients[read] = (gradients[read] if add else 0.0) + gradients[row] * derivative
    return gradients


FUNCTIONS = ["05.2", "05.3"]  # whose answer is a function

MISTAKES = [
    ("05.1", [("mul", 0, 1), ("add", 2, 0)], "It still has to be multiplied by a·b"),
    ("05.1", [("mul", 0, 1), ("add", 2, 1), ("mul", 3, 2)], "to a·b you add b. Add a, which is row 0"),
    ("05.1", [("mul", 0, 1), ("add", 2, 0), ("mul", 3, 3)], "the sum is multiplied by itself"),
    ("05.1", [("mul", 0, 1), ("add", 2, 0), ("mul", 0, 1), ("mul", 3, 4)], "by 4 instructions. Three are enough"),
    ("05.1", [("mul", 0, 1), ("add", 3, 0), ("mul", 3, 2)], "reads row 3, but writes row 3: there are only"),
    ("05.1", [("mul", "a", "b")], "names 'a', which is no row"),
    ("05.1", [("times", 0, 1)], "has the operation 'times'. There are add, mul, neg, max"),
    ("05.1", [(["mul"], 0, 1)], "has the operation ['mul']. There are"),
    ("05.1", [("mul", 0)], "reads 1 rows; mul reads 2"),
    ("05.1", "mul 0 1", "a program is a list of instructions, and this is a str"),
    ("05.2", lambda program, leaves: run_program(program, leaves)[-1], "Give back the list of all rows"),
    ("05.2", lambda program, leaves: run_program(program, leaves)[len(leaves) :], "the leaves are missing"),
    ("05.2", lambda program, leaves: run_program(program, leaves, copy=False), "changes the list of leaves"),
    ("05.2", lambda program, leaves: run_program(program, leaves, neg=lambda x: x), "wrong sign"),
    ("05.3", lambda program, values: back(program, values, add=False), "keeps only one of two contributions. Add"),
    ("05.3", lambda program, values: back(program, values, forward=True), "Begin with the last row"),
    ("05.3", lambda program, values: back(program, values, swapped=True), "the slope by one factor is the other"),
    ("05.3", lambda program, values: [0.0] * len(values), "The last row begins with 1"),
    ("05.3", lambda program, values: back(program, values)[:2], "Give those of all rows"),
]  # fmt: skip
