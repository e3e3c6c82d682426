"""Wrong answers to the exercises of lesson 8, with the expected explanations."""


def rule(g, a):
    return g / (1.0 + abs(a)) ** 2


def softsign(snippet="a / (1 + ti.abs(a))", rule=rule):
    return {"snippet": snippet, "rule": rule}


def bytes_moved(two=24e6, one=16e6, intensity=0.125):
    return {"two kernels": two, "one kernel": one, "operations per byte": intensity}


def safe(**wrong):
    return {"A": True, "B": True, "C": False, "D": False, "E": True, "F": False, **wrong}


def learn(
    up_each=False, fetch_each=False, forget=False, late=False, first=False, far=False, far_losses=False, look=False
):
    """Return a right answer to 08.3, or one with a mistake."""

    def learn_there(board, x, w, steps):
        far_x, far_w = board.put(x), board.put(w)
        start, losses = far_w, []
        for _ in range(steps):
            if up_each:
                far_x = board.put(x)
            if fetch_each:
                far_w = board.put(board.get(far_w))
            before = far_w
            if look:
                board.get(board.run("loss", far_w, far_x))
            after = board.run("step", start if forget else far_w, far_x)
            loss = board.run("loss", start if first else after if late else before, far_x)
            losses.append(loss if far_losses else board.get(loss))
            far_w = after
        return far_w if far else board.get(far_w), losses

    return learn_there


def behind(board, x, w, steps):
    far_x, far_w = board.put(x), board.put(w)
    losses = []
    for _ in range(steps):
        losses.append(board.get(board.run("loss", far_w, far_x)))
        w = board.get(far_w)
        far_w = board.run("step", far_w, far_x)
    return w, losses


def compute_locally(board, x, w, steps):
    losses = []
    for _ in range(steps):
        losses.append(((w - x) ** 2).sum())
        w = w - 0.25 * (w - x)
    return w, losses


def numbers_for_addresses(board, x, w, steps):
    board.put(x)
    return board.get(board.run("step", w, x)), []


FUNCTIONS = ["08.3"]  # whose answer is a function

MISTAKES = [
    ("08.1", softsign("a / 1 + ti.abs(a)"), "Put parentheses around 1 + ti.abs(a)"),
    ("08.1", softsign("ti.abs(a) / (1 + ti.abs(a))"), "the numerator is a itself, with its sign"),
    ("08.1", softsign("a / (1 - ti.abs(a))"), "in the denominator, |a| is added"),
    ("08.1", softsign("a / (1 + a)"), "divides by 0 at a = -1"),
    ("08.1", softsign("a / (1 + abs(a))"), "its functions are Taichi's, such as ti.abs"),
    ("08.1", softsign("a / (1 + np.abs(a))"), "its functions are Taichi's, such as ti.abs"),
    ("08.1", softsign("x / (1 + ti.abs(x))"), "The operand is called a"),
    ("08.1", softsign("return a / (1 + ti.abs(a))"), "Write no `return`"),
    ("08.1", softsign("a if a > 0 else -a"), "should consist of +, -, *, /"),
    ("08.1", softsign(lambda a: a / (1 + abs(a))), "the snippet should be a string"),
    ("08.1", softsign(rule="g / (1 + ti.abs(a))"), "the rule should be a function"),
    ("08.1", softsign(rule=lambda g, x: g), "It may have g, y and a"),
    ("08.1", softsign(rule=lambda a: 1 / (1 + abs(a)) ** 2), "has no parameter g"),
    ("08.1", softsign(rule=lambda g, a: 1 / (1 + abs(a)) ** 2), "it must be multiplied by g"),
    ("08.1", softsign(rule=lambda g, a: g / (1 + abs(a))), "the derivative of the numerator alone"),
    ("08.1", softsign(rule=lambda g, a: g * (1 + 2 * abs(a)) / (1 + abs(a)) ** 2), "a minus sign between"),
    ("08.1", softsign(rule=lambda g, a: g * (1 + abs(a) - a) / (1 + abs(a)) ** 2), "the derivative of |a| is −1"),
    ("08.1", softsign(rule=lambda g, a: g / (1 + a) ** 2), "divides by 0. The denominator is 1 + |a|"),
    ("08.1", softsign(rule=lambda g, y: g * y), "g times the output"),
    ("08.1", "a / (1 + ti.abs(a))", "the answer should be a dict"),
    ("08.2", bytes_moved(two=16e6), "one kernel writes it, the other reads it"),
    ("08.2", bytes_moved(two=12e6), "that is one kernel"),
    ("08.2", bytes_moved(two=6e6), "A float32 has four bytes"),
    ("08.2", bytes_moved(two=24), "in megabytes"),
    ("08.2", bytes_moved(one=12e6), "the result has to be written"),
    ("08.2", bytes_moved(one=24e6), "the product never leaves the processor"),
    ("08.2", bytes_moved(intensity=8), "Turn it over"),
    ("08.2", bytes_moved(intensity=1 / 16), "two operations"),
    ("08.2", bytes_moved(intensity=1 / 12), "Ask the fused one"),
    ("08.2", {"two kernels": 24e6, "one kernel": 16e6}, "operations per byte is missing from the dict"),
    ("08.3", learn(up_each=True), "in 1 step, x is uploaded 2 times. Do that before the loop"),
    ("08.3", learn(fetch_each=True), "in 1 step, w is uploaded 2 times"),
    ("08.3", learn(forget=True), "has made one step only"),
    ("08.3", learn(late=True), "that is the loss after the step"),
    ("08.3", learn(first=True), "that is the loss of the first w again"),
    ("08.3", learn(far=True), "the w that you return is an address"),
    ("08.3", learn(far_losses=True), "the losses that you return are addresses"),
    ("08.3", learn(look=True), "in 1 step, there are 3 downloads"),
    ("08.3", behind, "has not changed"),
    ("08.3", compute_locally, "right, but computed here"),
    ("08.3", numbers_for_addresses, "the board expects an address"),
    ("08.3", lambda board, x, w, steps: w, "return two things"),
    ("08.3", lambda board, x, w, steps: (board.get(board.run("move", 0, 1)), []), "has no kernel for 'move'"),
    ("08.4", safe(A=False), "A is no race: x is only read"),
    ("08.4", safe(B=False), "B is no race: each iteration reads and writes its own x[i]"),
    ("08.4", safe(C=True), "C is a race: iteration i reads x[i + 1]"),
    ("08.4", safe(D=True), "D is a race: all iterations read and write total[0]"),
    ("08.4", safe(E=False), "E is no race"),
    ("08.4", safe(F=True), "F is a race: iterations 0 and 1 both write y[0]"),
    ("08.4", safe(C="race"), "C should be True"),
]  # fmt: skip
