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

    test_cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    test_cluster.nodes = [test_cluster.add_node(num_cpus=1), test_cluster.add_node(num_cpus=1)]
    monkeypatch.setenv("RAY_ADDRESS", test_cluster.address)
    yield test_cluster
    test_cluster.shutdown()


@pytest.mark.slow
def test_removing_a_node_does_not_change_results(cluster):
    def removing(run):
        if run.step == 5:
            cluster.remove_node(cluster.nodes[0], allow_graceful=False)

    options = {"epochs": 4, "workers": 2, "seed": 5, "progress": False}
    undisturbed = mg.distributed.fit(jobs.dropout, jobs.loader(), **options)
    result = mg.distributed.fit(jobs.dropout, jobs.loader(), callbacks=[removing], **options)
    assert result.history.steps == undisturbed.history.steps
    for a, b in zip(result.model.parameters(), undisturbed.model.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
