"""Sorting. Only bools, and the layout broadcast along a dimension, contain ties."""

import numpy as np

from samples import distinct_floats, distinct_ints, sample

UNSTABLE = dict.fromkeys(("int64", "int32", "uint8", "bool"), "PyTorch orders the indices of ties arbitrarily")
UNSTABLE_ALONG_0 = {**UNSTABLE, "broadcast": "the same"}

rising = np.sort(distinct_floats(2, 5))

SAMPLES = [
    sample("sort", lambda F, x: F.sort(x), distinct_floats(3, 4), differs=UNSTABLE),
    sample("sort, stable", lambda F, x: F.sort(x, dim=0, stable=True), distinct_floats(3, 4)),
    sample(
        "sort, stable and descending", lambda F, x: x.sort(descending=True, stable=True, dim=0), distinct_floats(3, 4)
    ),
    sample("sort, dim 1 of 3", lambda F, x: x.sort(1, True), distinct_floats(2, 3, 2), differs=UNSTABLE),
    sample("argsort", lambda F, x: F.argsort(x, stable=True), distinct_floats(3, 4)),
    sample("argsort, descending", lambda F, x: x.argsort(0, True), distinct_floats(3, 4), differs=UNSTABLE_ALONG_0),
    sample("msort", lambda F, x: F.msort(x), distinct_floats(3, 4)),
    sample("topk", lambda F, x: F.topk(x, 2), distinct_floats(3, 4), differs=UNSTABLE),
    sample("topk, all", lambda F, x: F.topk(x, 3, 0), distinct_floats(3, 4), differs=UNSTABLE_ALONG_0),
    sample(
        "topk, smallest", lambda F, x: x.topk(2, dim=0, largest=False), distinct_floats(3, 4), differs=UNSTABLE_ALONG_0
    ),
    sample("topk of 1", lambda F, x: x.topk(1), distinct_floats(3, 4), differs=UNSTABLE),
    sample(
        "topk of 0",
        lambda F, x: x.topk(0)[0],
        distinct_floats(3, 4),
        differs={"0-d": "PyTorch returns the value"},
        kinked=True,
    ),
    sample("kthvalue", lambda F, x: F.kthvalue(x, 2), distinct_floats(3, 4), differs=UNSTABLE),
    sample(
        "kthvalue, keepdim",
        lambda F, x: x.kthvalue(1, 0, keepdim=True),
        distinct_floats(3, 4),
        differs=UNSTABLE_ALONG_0,
    ),
    sample(
        "median",
        lambda F, x: F.median(x),
        distinct_floats(3, 4),
        differs={"empty": "empty dimension", "broadcast": "ties"},
    ),
    sample("median, dim", lambda F, x: x.median(1), distinct_floats(3, 4), differs=UNSTABLE),
    sample(
        "median, keepdim", lambda F, x: F.median(x, 0, keepdim=True), distinct_floats(3, 4), differs=UNSTABLE_ALONG_0
    ),
    sample(
        "searchsorted",
        lambda F, r, v: F.searchsorted(r, v),
        rising,
        distinct_floats(2, 3),
        differs={"uint8": "not ascending without their signs"},
    ),
    sample(
        "searchsorted, right",
        lambda F, n: F.searchsorted(n.new_tensor([1, 2, 2, 3]), n, right=True),
        distinct_ints(5, high=5),
    ),
    sample(
        "searchsorted, sorter",
        lambda F, r, v: F.searchsorted(-r, v, sorter=(-r).argsort()),
        rising,
        distinct_floats(2, 3),
        differs={"uint8": "not ascending without their signs"},
    ),
    sample("bucketize", lambda F, n: F.bucketize(n, n.new_tensor([1, 2, 3])), distinct_ints(2, 3, high=5)),
]
