"""distributed.fit on a cluster at RAY_ADDRESS: two Ray nodes on one machine, one of which is removed."""

import os
from pathlib import Path

import numpy as np
import pytest

import distributed_jobs as jobs
import minigrad as mg
from needs import needs

pytestmark = pytest.mark.nightly


@pytest.fixture
def cluster(monkeypatch):
    """Start a head node without CPUs, and two nodes with one CPU each."""
    needs("ray", "Ray's processes")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    made.nodes = [made.add_node(num_cpus=1), made.add_node(num_cpus=1)]
    monkeypatch.setenv("RAY_ADDRESS", made.address)
    yield made
    made.shutdown()


@pytest.mark.slow
def test_a_node_that_is_removed_while_training_changes_no_digit(cluster):
    def removing(run):
        if run.step == 5:
            cluster.remove_node(cluster.nodes[0], allow_graceful=False)

    options = {"epochs": 4, "workers": 2, "seed": 5, "progress": False}
    undisturbed = mg.distributed.fit(jobs.dropout, jobs.loader(), **options)
    found = mg.distributed.fit(jobs.dropout, jobs.loader(), callbacks=[removing], **options)
    assert found.history.steps == undisturbed.history.steps
    for a, b in zip(found.model.parameters(), undisturbed.model.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
