"""Gradient flow: the columns of a long training, and where each alarm begins."""

import math

import pytest

from minigrad_viz.trace.gradient_flow import MAX_COLUMNS, Alarm, Flow, StepMeasurement

NAN, INF = math.nan, math.inf


def flow_of(*steps, **options):
    """Return the flow of steps given as lists of sizes, None for a layer without a gradient."""
    flow = Flow()
    for step, sizes in enumerate(steps, 1):
        present = {row: size for row, size in enumerate(sizes) if size is not None}
        flow.add(step, StepMeasurement(present, list(range(len(sizes))), **options))
    return flow


def alarm_starts(flow):
    return [(alarm.kind, alarm.step, alarm.row) for alarm in flow.alarms]


def test_each_measured_step_is_a_column_until_all_are_used():
    flow = flow_of(*[[float(step)] for step in range(1, MAX_COLUMNS + 1)])
    assert (flow.every, len(flow.columns)) == (1, MAX_COLUMNS)
    assert [(one.first, one.last, one.sizes) for one in flow.columns[:2]] == [(1, 1, {0: 1.0}), (2, 2, {0: 2.0})]


@pytest.mark.parametrize("count", [MAX_COLUMNS + 1, 2 * MAX_COLUMNS, 2 * MAX_COLUMNS + 1, 1000, 12_345])
def test_merged_columns_lose_no_step_and_no_peak(count):
    flow = flow_of(*[[100.0 if step == 77 else 1.0 + step / count] for step in range(1, count + 1)])
    assert MAX_COLUMNS // 2 < len(flow.columns) <= MAX_COLUMNS
    assert [one.count for one in flow.columns[:-1]] == [flow.every] * (len(flow.columns) - 1)
    assert sum(one.count for one in flow.columns) == count
    assert [one.first for one in flow.columns] == [1 + flow.every * k for k in range(len(flow.columns))]
    assert [one.last for one in flow.columns[:-1]] == [one.first - 1 for one in flow.columns[1:]]
    peak = flow.columns[flow.column_of(77)]
    assert peak.first <= 77 <= peak.last
    assert peak.sizes[0] == 100.0
    assert all(one.sizes[0] <= 2.0 for one in flow.columns if one is not peak)


def test_column_is_nan_if_any_step_is_and_blank_if_all_are():
    steps = [[1.0, None]] * (MAX_COLUMNS + 2)
    steps[0], steps[2], steps[3] = [NAN, None], [None, 5.0], [None, None]
    flow = Flow()
    for step, sizes in enumerate(steps, 1):
        flow.add(step, StepMeasurement({row: size for row, size in enumerate(sizes) if size is not None} or {0: 1.0}))
    assert flow.every == 2
    assert math.isnan(flow.columns[0].sizes[0])
    assert flow.columns[1].sizes == {1: 5.0, 0: 1.0}
    assert flow.columns[2].sizes == {0: 1.0}
    assert flow.rows() == [0, 1]


def test_step_without_gradients_has_no_column():
    flow = flow_of([None, None], [1.0, None])
    assert [column.first for column in flow.columns] == [2]


def test_vanishing_and_exploding_are_relative_to_the_layer_nearest_the_loss():
    flow = flow_of([0.9e-3, 1.1e-3, 999.0, 1001.0, 1.0], [1e-9, 1e-9, 2e9, 2e9, 1.0])
    assert flow.alarms[:2] == [Alarm("vanishing", 1, 0, 0.9e-3, 1.0, 4), Alarm("exploding", 1, 3, 1001.0, 1.0, 4)]
    assert alarm_starts(flow)[2:] == [("vanishing", 2, 1), ("exploding", 2, 2)]  # once per layer, at its first step


def test_layer_nearest_the_loss_is_the_last_called_with_a_gradient():
    flow = Flow()
    flow.add(1, StepMeasurement({0: 1.0, 1: 1e-5, 2: 0.0}, order=[1, 0, 2, 3]))
    assert [(alarm.kind, alarm.row, alarm.reference_row) for alarm in flow.alarms] == [
        ("vanishing", 1, 0),
        ("vanishing", 2, 0),
    ]
    flow = Flow()
    flow.add(1, StepMeasurement({0: 0.0, 1: 0.0}, order=[0, 1]))
    assert flow.alarms == []


def test_thousandfold_growth_raises_an_alarm_after_warmup():
    assert alarm_starts(flow_of(*[[1.0]] * 4, [2000.0])) == []
    flow = flow_of(*[[1.0], [0.0]] * 5, [2000.0], [2e6])
    assert alarm_starts(flow) == [("grown", 11, 0)]
    assert flow.alarms[0].reference_size == pytest.approx(1.0)


def test_first_non_finite_value_is_in_the_first_output_or_first_gradient():
    outputs = flow_of([1.0, 1.0], [NAN, NAN, NAN], non_finite={1: NAN, 2: NAN})
    assert [alarm[:3] for alarm in outputs.alarms] == [("nan", 1, 1)]
    assert outputs.alarms[0].reference_row == 1
    gradients = flow_of([1.0, 1.0, 1.0], [INF, INF, 1.0], [NAN, NAN, NAN])
    assert [(alarm.kind, alarm.step, alarm.row, alarm.reference_row) for alarm in gradients.alarms] == [
        ("inf", 2, 1, None)
    ]


def test_harmless_infinity_raises_no_alarm():
    flow = flow_of([1e-6, 1.0], non_finite={0: -INF})
    assert alarm_starts(flow) == [("vanishing", 1, 0)]


def test_dead_units_and_stale_gradients_raise_one_alarm():
    flow = Flow()
    for step, share in enumerate((0.4, 0.5, 1.0), 1):
        flow.add(step, StepMeasurement({0: 1.0}, [0, 1], dead={1: share}, stale={0} if step > 1 else ()))
    assert flow.alarms[0] == Alarm("dead", 2, 1, 0.5)
    assert alarm_starts(flow) == [("dead", 2, 1), ("stale", 2, 0)]
    assert flow.rows() == [0, 1]


def test_alarm_stays_in_its_column_when_columns_merge():
    flow = Flow()
    for step in range(1, 1001):
        flow.add(step, StepMeasurement({0: 1e-9 if step >= 321 else 1.0, 1: 1.0}, [0, 1]))
    assert alarm_starts(flow) == [("vanishing", 321, 0)]
    column = flow.columns[flow.column_of(321)]
    assert column.first <= 321 <= column.last
