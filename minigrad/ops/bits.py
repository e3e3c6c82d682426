"""Bitwise operations on integers and bools, and `signbit`. They are not differentiable."""

from minigrad.core.op import Op

__all__ = ["bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "signbit"]

bitwise_and = Op("bitwise_and", r"{a} \land {b}", vjp=(None, None), precedence=Op.COMPARISON, promotes="same")
bitwise_or = Op("bitwise_or", r"{a} \lor {b}", vjp=(None, None), precedence=Op.COMPARISON, promotes="same")
bitwise_xor = Op("bitwise_xor", r"{a} \oplus {b}", vjp=(None, None), precedence=Op.COMPARISON, promotes="same")
bitwise_not = Op("bitwise_not", r"\operatorname{not} {a}", vjp=(None,), promotes="same")
signbit = Op("signbit", r"\operatorname{signbit} {a}", vjp=(None,))
