"""Each scheduler sets PyTorch's rates for 100 steps, and can be saved and resumed."""

import copy
import re
import warnings

import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import ArgumentError, DTypeError
from needs import needs
from scheduler_cases import ALL, COMBINED, STEPS, assert_close, decay, optimizer_of, record_rates

needs("numpy")


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize(("name", "options"), ALL.values(), ids=ALL)
def test_rates_are_pytorch_s_for_100_steps(torch, name, options, kind):
    def make(schedulers, optimizer):
        return getattr(schedulers, name)(optimizer, **options)

    assert_close(record_rates(mg, make, kind), record_rates(torch, make, kind))


def rates_after_resume(library, name, options, n):
    """Return 30 rates of a scheduler created with `last_epoch` after `n` steps, for a restored optimizer."""
    first, optimizer = optimizer_of(library), optimizer_of(library)
    scheduler = getattr(library.optim.lr_scheduler, name)(first, **options)
    for _ in range(n):
        first.step()
        scheduler.step()
    optimizer.load_state_dict(copy.deepcopy(first.state_dict()))
    scheduler = getattr(library.optim.lr_scheduler, name)(optimizer, **options, last_epoch=n - 1)
    results = []
    for _ in range(30):
        results.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    return results


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize(("name", "options"), [x for x in ALL.values() if "T_mult" not in x[1]])
def test_a_scheduler_created_during_a_run_sets_pytorchs_rates(torch, name, options):
    for n in (1, 2, 7, 10, 21):
        assert_close(rates_after_resume(mg, name, options, n), rates_after_resume(torch, name, options, n))


def test_a_resumed_scheduler_sets_the_rates_of_the_uninterrupted_run():
    for name, options in [x for x in ALL.values() if x[0] not in ("StepLR", "MultiStepLR", "ConstantLR")]:
        whole = record_rates(mg, lambda s, o, name=name, options=options: getattr(s, name)(o, **options))
        for n in (1, 3, 10):
            assert_close(rates_after_resume(mg, name, options, n), [row[:2] for row in whole[n : n + 30]])
    optimizer = mg.optim.SGD([mg.ones(1, requires_grad=True)], lr=0.0125)
    optimizer.param_groups[0]["initial_lr"] = 0.1
    assert mg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5, last_epoch=2).get_last_lr() == [0.0125]


GROWING = [x for x in ALL.values() if not any(isinstance(y, list) for y in x[1].values())] + [
    ("MultiStepLR", {"milestones": [4, 1, 1, 8], "gamma": 0.3})
]


@merge_cases
@pytest.mark.parametrize(("name", "options"), GROWING)
def test_a_group_added_later_is_scheduled(name, options):
    optimizer = optimizer_of(mg)
    scheduler = getattr(mg.optim.lr_scheduler, name)(optimizer, **options)
    optimizer.add_param_group({"params": [mg.ones(2, requires_grad=True)], "lr": 0.1})
    for _ in range(STEPS - 1):
        optimizer.step()
        scheduler.step()
        rates = scheduler.get_last_lr()
        begun = 0.1 / options.get("factor", 1 / 3) if name == "ConstantLR" else 0.1 / options.get("start_factor", 1 / 3)
        same = name not in ("ConstantLR", "LinearLR")  # these start below the initial rate
        first = optimizer.param_groups[0]["initial_lr"]
        assert rates[2] == pytest.approx(rates[0] if same else rates[0] * begun / first)


@pytest.mark.parity
def test_added_groups_get_pytorch_s_rates_where_it_schedules_them(torch):
    for name, options in [*GROWING, ("ReduceLROnPlateau", {"patience": 0})]:
        if name in ("CosineAnnealingLR", "CosineAnnealingWarmRestarts", "OneCycleLR", "LambdaLR", "CyclicLR"):
            continue  # PyTorch raises ValueError of zip, and KeyError
        for n in (0, 1, 4, 7):
            results = []
            for library in (mg, torch):
                optimizer = optimizer_of(library)
                scheduler = getattr(library.optim.lr_scheduler, name)(optimizer, **options)
                metric = [1.0] if name == "ReduceLROnPlateau" else []
                rates = []
                for k in range(30):
                    if k == n:
                        optimizer.add_param_group({"params": [library.ones(2).requires_grad_()], "lr": 0.3})
                    optimizer.step()
                    scheduler.step(*metric)
                    rates.append(list(scheduler.get_last_lr()))
                results.append(rates)
            assert_close(*results)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:.*epoch.*")
def test_step_accepts_an_epoch_as_in_pytorch(torch):
    for name, options in [*ALL.values(), ("ReduceLROnPlateau", {"patience": 0})]:
        results = []
        for library in (mg, torch):
            optimizer = optimizer_of(library)
            scheduler = getattr(library.optim.lr_scheduler, name)(optimizer, **options)
            metric = [1.0] if name == "ReduceLROnPlateau" else []
            optimizer.step()
            rates = []
            for epoch in [(3,), (7,), (7,), (2,), (0,), (50,), (13,), *[()] * 5]:
                scheduler.step(*metric, *epoch)
                rates.append([*(group["lr"] for group in optimizer.param_groups), scheduler.last_epoch])
            results.append(rates)
        assert_close(*results)


def test_the_epoch_argument_is_deprecated_and_rejected_by_chains():
    optimizer = optimizer_of(mg)
    s = mg.optim.lr_scheduler
    optimizer.step()
    with pytest.warns(UserWarning, match=re.escape("StepLR.step(epoch) is deprecated")) as warned:
        s.StepLR(optimizer, 3).step(4)
    assert warned[0].filename == __file__
    with pytest.raises(
        ArgumentError, match=r"ChainedScheduler\.step: epoch is not supported: each scheduler has its own"
    ):
        s.ChainedScheduler([s.StepLR(optimizer, 3)]).step(4)


@pytest.mark.parity
def test_a_tensor_rate_is_updated_in_place_as_in_pytorch(torch):
    for name, options in [x for x in ALL.values() if not any(isinstance(y, list) for y in x[1].values())]:
        results = []
        for library in (mg, torch):
            rate = library.tensor(0.1)
            optimizer = library.optim.SGD([library.ones(2).requires_grad_()], lr=rate, momentum=0.9)
            scheduler = getattr(library.optim.lr_scheduler, name)(optimizer, **options)
            rates = []
            for _ in range(25):
                optimizer.step()
                scheduler.step()
                rates.append([float(rate), float(scheduler.get_last_lr()[0])])
            assert optimizer.param_groups[0]["lr"] is rate
            assert scheduler.get_last_lr()[0] is not rate
            results.append(rates)
        for row, expected in zip(*results, strict=True):
            assert row == pytest.approx(expected, rel=1e-5, abs=1e-7), name


def test_attributes_of_a_callable_object_are_saved_with_its_scheduler():
    class Falling:
        def __init__(self, by):
            self.by = by

        def __call__(self, e):
            return self.by**e

    optimizer = optimizer_of(mg)
    saved = mg.optim.lr_scheduler.LambdaLR(optimizer, [Falling(0.5), decay]).state_dict()
    assert saved["lr_lambdas"] == [{"by": 0.5}, None]
    scheduler = mg.optim.lr_scheduler.LambdaLR(optimizer, [Falling(0.9), decay])
    scheduler.load_state_dict(saved)
    optimizer.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [0.05, 0.02 * 0.95]


@merge_cases
@pytest.mark.parametrize("key", [*ALL, *COMBINED])
def test_a_saved_scheduler_resumes_as_if_uninterrupted(key):
    def make(schedulers, optimizer):
        if key in COMBINED:
            return COMBINED[key](schedulers, optimizer)
        name, options = ALL[key]
        return getattr(schedulers, name)(optimizer, **options)

    expected = record_rates(mg, make)
    first = optimizer_of(mg)
    scheduler = make(mg.optim.lr_scheduler, first)
    for _ in range(37):
        first.step()
        scheduler.step()
    saved = copy.deepcopy((first.state_dict(), scheduler.state_dict()))
    again = optimizer_of(mg)
    resumed = make(mg.optim.lr_scheduler, again)
    again.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    rates = []
    for _ in range(37, STEPS):
        rates.append([group["lr"] for group in again.param_groups])
        again.step()
        resumed.step()
    assert rates == [row[:2] for row in expected[37:]]


def test_a_modified_rate_is_multiplied_further():
    optimizer = optimizer_of(mg)
    scheduler = mg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    optimizer.param_groups[0]["lr"] = 8.0
    optimizer.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [4.0, 0.01]


def test_stepping_before_the_optimizer_warns_once():
    optimizer = optimizer_of(mg)
    scheduler = mg.optim.lr_scheduler.StepLR(optimizer, 3)
    with pytest.warns(UserWarning, match=re.escape("Detected call of StepLR.step() before optimizer.step()")) as warned:
        scheduler.step()
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()
        other = mg.optim.lr_scheduler.StepLR(optimizer, 3)
        optimizer.step()
        other.step()


def test_a_scheduler_can_resume_from_a_step_count():
    optimizer = optimizer_of(mg)
    with pytest.raises(
        ArgumentError, match=r"StepLR: param 'initial_lr' is not specified in param_groups\[0\] when resuming"
    ):
        mg.optim.lr_scheduler.StepLR(optimizer, 5, last_epoch=9)
    for group in optimizer.param_groups:
        group["initial_lr"] = group["lr"]
    assert mg.optim.lr_scheduler.LambdaLR(optimizer, lambda e: e, last_epoch=9).get_last_lr() == [1.0, 0.2]


INVALID = [
    (lambda s, o: s.StepLR("SGD", 3), DTypeError, "StepLR: expected an Optimizer, but got a str."),
    (lambda s, o: s.StepLR(o, 0), ArgumentError, "StepLR: expected positive integer step_size, but got 0."),
    (
        lambda s, o: s.ConstantLR(o, 2.0),
        ArgumentError,
        "ConstantLR: expected factor to be between 0 and 1, but got 2.0.",
    ),
    (lambda s, o: s.LinearLR(o, 0), ArgumentError, "LinearLR: expected start_factor to be greater than 0"),
    (
        lambda s, o: s.CosineAnnealingLR(o, 0.5),
        ArgumentError,
        "CosineAnnealingLR: expected positive integer T_max, but got 0.5",
    ),
    (lambda s, o: s.OneCycleLR(o, 0.1), ArgumentError, "OneCycleLR: you must define either total_steps"),
    (
        lambda s, o: s.OneCycleLR(o, 0.1, 9, anneal_strategy="x"),
        ArgumentError,
        'OneCycleLR: anneal_strategy must be "cos"',
    ),
    (
        lambda s, o: s.OneCycleLR(o, [0.1], 9),
        ArgumentError,
        "expected 2 values, one per param group, but got 1: [0.1].",
    ),
    (
        lambda s, o: s.OneCycleLR(mg.optim.Adagrad([mg.ones(1)]), 0.1, 9),
        ArgumentError,
        "OneCycleLR: cycle_momentum requires momentum or betas, which Adagrad lacks.\n  Write cycle_momentum=False.",
    ),
    (lambda s, o: s.PolynomialLR(o, 0), ArgumentError, "PolynomialLR: expected positive integer total_iters"),
    (
        lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="x"),
        ArgumentError,
        "CyclicLR: mode is invalid: mode='x', scale_mode='cycle'; expected mode",
    ),
    (
        lambda s, o: s.CyclicLR(mg.optim.Adagrad([mg.ones(1)]), 0.1, 0.2),
        ArgumentError,
        "CyclicLR: cycle_momentum requires momentum or betas, which Adagrad lacks.",
    ),
    (lambda s, o: s.MultiplicativeLR(o, [abs]), ArgumentError, "MultiplicativeLR: expected 2 lr_lambdas, but got 1"),
    (lambda s, o: s.LambdaLR(o, [abs]), ArgumentError, "LambdaLR: expected 2 lr_lambdas, but got 1."),
    (lambda s, o: s.SequentialLR(o, [s.StepLR(o, 3)], [4]), ArgumentError, "but got 1 schedulers and 1 milestones"),
    (
        lambda s, o: s.SequentialLR(o, [s.StepLR(optimizer_of(mg), 3)], []),
        ArgumentError,
        "SequentialLR: expected all schedulers to belong to the same optimizer and to step without metrics, but got",
    ),
    (lambda s, o: s.ReduceLROnPlateau(o, factor=1.0), ArgumentError, "ReduceLROnPlateau: factor should be < 1.0"),
    (lambda s, o: s.ReduceLROnPlateau(o, mode="up"), ArgumentError, "but got 'up' and 'rel'"),
]


@merge_cases
@pytest.mark.parametrize(("make", "error", "text"), INVALID, ids=range(len(INVALID)))
def test_invalid_arguments_raise(make, error, text):
    with pytest.raises(error, match=re.escape(text)):
        make(mg.optim.lr_scheduler, optimizer_of(mg))


def test_a_rejected_scheduler_changes_nothing():
    optimizer = mg.optim.SGD([mg.ones(2, requires_grad=True)], lr=0.1)
    before = dict(optimizer.param_groups[0])
    with pytest.raises(DTypeError, match=r"LambdaLR: 0\.5 is a float; expected a callable"):
        mg.optim.lr_scheduler.LambdaLR(optimizer, 0.5)
    with pytest.raises(DTypeError, match=r"MultiStepLR: .* but got an int\.\n  Write milestones=\[5\]"):
        mg.optim.lr_scheduler.MultiStepLR(optimizer, 5)
    assert optimizer.param_groups[0].keys() == before.keys()
    plan = mg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=1)
    optimizer.step()
    plan.step()
    state = plan.state_dict()
    with pytest.raises(ArgumentError, match="tried to step 2 times"):
        plan.step()
    assert plan.state_dict() == state
