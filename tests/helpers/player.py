"""Run jobs in the player under Node.js, for tests that compare it with Python."""

import json
import math
import subprocess

from needs import FRONTEND, needs

COMPARE = FRONTEND / "tests" / "compare.js"


def run_job(*options, **job):
    """Return the player's result of a job."""
    needs("node")
    child = subprocess.run(
        ["node", *options, str(COMPARE)],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=300,
        encoding="utf-8",
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


def encode_float(x):
    """Encode a float for a job: non-finite values as strings."""
    if not math.isfinite(x):
        return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
    return x
