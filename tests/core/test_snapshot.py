"""The public snapshot of a graph: one record per node, without side effects."""

import minigrad as mg
from minigrad.core.snapshot import FREED, snapshot
from needs import needs


def test_records_are_in_topological_order_with_value_gradient_and_attributes():
    a, b = mg.Value(2.0, "a"), mg.Value(-3.0).detach()
    with mg.record(lines=True), mg.scope("part"):
        y = (a * b + 1.0) ** 2
    y.backward()
    records = {record.node: record for record in snapshot([y])}
    assert list(records) == mg.topological([y])
    assert records[a][:2] == (a, None)
    assert (records[a].label, records[a].value, records[a].gradient, records[a].requires_grad) == ("a", 2.0, 30.0, True)
    assert (records[b].label, records[b].gradient, records[b].requires_grad) == (None, None, False)
    last = records[y]
    assert (last.op.name, last.value, last.scope, last.operands) == ("pow", 25.0, "part", y.inputs)
    assert "y = (a * b + 1.0) ** 2" in last.line
    assert {record.scope for record in records.values() if record.op} == {"part"}


def test_modified_operands_of_a_value_are_reported_by_slot():
    a, b = mg.Value(2.0), mg.Value(3.0)
    y = a * b
    assert snapshot([y])[-1].stale == ()
    b.data = 4.0
    assert snapshot([y])[-1].stale == (1,)
    assert snapshot([a, y, y])[-1].stale == (1,)


def test_the_module_call_of_a_value_is_recorded():
    neuron = mg.nn.scalar.Neuron(1)
    inputs = [2.0]
    ((module, args),) = snapshot([neuron(inputs)])[-1].calls
    assert module is neuron
    assert args[0] is inputs


def test_a_step_record_has_operands_constants_shape_and_saved_tensors():
    needs("numpy")
    w, x = mg.tensor([[1.0, 2.0]], requires_grad=True), mg.tensor([[3.0], [4.0]])
    y = (w @ x).sum(dim=0, keepdim=True)
    leaf, product, total = snapshot([y])
    assert (leaf.node, leaf.op, leaf.value, leaf.shape, leaf.dtype) == (w, None, w, (1, 2), "float32")
    assert (product.node, product.op.name) == (y.grad_fn.next_functions[0], "matmul")
    assert product.operands == (w, None)
    assert product.constants[1] is x
    assert (product.shape, product.dtype, product.value) == ((1, 1), "float32", None)
    assert product.saved[2] is x
    assert total.attrs["keepdim"] is True
    y.backward()
    second = snapshot([y])
    assert [record.saved for record in second] == [(), None, None]
    assert second[0].gradient.tolist() == [[3.0, 4.0]]
    assert second[1].constants[1] is x


def test_a_freed_constant_differs_from_an_omitted_operand():
    needs("numpy")
    x = mg.ones(5000, requires_grad=True)
    y = (x * mg.ones(5000)).sum()
    y.backward()
    product = snapshot([y])[1]
    assert product.constants == (None, FREED)
    assert repr(FREED) == "FREED"


def test_later_writes_to_leaves_constants_and_saved_outputs_are_reported():
    needs("numpy")
    x, k = mg.tensor([1.0], requires_grad=True), mg.tensor([2.0])
    y = x * k
    z = y.exp()
    k.add_(1.0)
    with mg.no_grad():
        x.add_(1.0)
        z.add_(1.0)
    _, product, power = snapshot([z])
    assert (product.stale, product.overwritten) == ((0, 1), False)
    assert (power.stale, power.overwritten) == ((), True)


def test_stored_outputs_gradients_and_hooks_are_reported():
    needs("numpy")
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    with mg.record():
        y = x * 2.0
        y.sum().backward()
    x.register_hook(lambda g: g)
    leaf, product = snapshot([y])
    assert (leaf.hooked, product.hooked) == (True, False)
    assert product.value.tolist() == [2.0, 4.0]
    assert product.gradient.tolist() == [1.0, 1.0]


def test_a_step_record_of_a_function_refers_to_it():
    needs("numpy")

    class Double(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            return x * k

        @staticmethod
        def backward(ctx, g):
            return 2 * g, None

    record = snapshot([Double.apply(mg.tensor([1.0], requires_grad=True), 2)])[1]
    assert record.function is Double
    assert record.constants == (None, 2)


def test_a_tensor_without_a_gradient_is_its_own_graph():
    needs("numpy")
    x = mg.tensor([1, 2])
    (record,) = snapshot([x])
    assert (record.node, record.requires_grad, record.dtype, record.gradient) == (x, False, "int64", None)
