"""Asks the player, by node, what it makes of something: for tests that compare it with Python."""

import json
import math
import subprocess

from needs import FRONTEND, needs

COMPARE = FRONTEND / "tests" / "compare.js"


def compare(*options, **job):
    """What the player makes of a job, by node."""
    needs("node")
    done = subprocess.run(
        ["node", *options, str(COMPARE)],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=300,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def coded(x):
    """A number as a job has it."""
    if not math.isfinite(x):
        return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
    return x
