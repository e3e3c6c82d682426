"""Operations as loops over flat buffers, with which the player recomputes tensors."""

import minigrad as mg
from minigrad.backends.loops import forward


def test_an_operand_with_a_long_formula_is_computed_into_a_buffer():
    deep = mg.Op(
        "deep_sigmoid",
        r"\operatorname{deep}({a})",
        vjp=(None,),
        meaning=lambda a: nested(a, 40),
        listed=False,
    )

    def nested(a, depth):
        for _ in range(depth):
            a = mg.OPS["sigmoid"](a)
        return a

    program = forward(deep, [(3,)], {})
    assert len(program["loops"]) > 1
    assert len(program["sizes"]) == len(program["loops"])
    assert all(len(loop["f"]) < 400 for loop in program["loops"])
