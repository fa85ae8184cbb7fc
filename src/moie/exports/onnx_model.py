"""Exports as ONNX models: scaling and clipping inside, any batch size.

The model takes and gives single precision, as most runtimes expect, and computes in double.
"""

import json
from typing import Any

import numpy as np

from moie.exports.description import Description, Experts, Layers
from moie.exports.notes import Notes
from moie.exports.vectors import Vectors
from moie.files import as_json
from moie.policy.base import Policy

OPSET = 18
IR_VERSION = 8
"""That of the first release of ONNX with this operator set: older runtimes can read it."""


class _Graph:
    """Nodes and tables of a model, as they are added."""

    def __init__(self) -> None:
        import onnx

        self._onnx: Any = onnx
        self.nodes: list[Any] = []
        self.tables: list[Any] = []

    def table(self, name: str, values: Any, kind: type = np.float64) -> str:
        """A table under its name."""
        array: np.ndarray = np.asarray(values, dtype=kind)
        self.tables.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, name: str, **attributes: Any) -> str:
        """A node whose result has this name."""
        node = self._onnx.helper.make_node(operator, inputs, [name], name, **attributes)
        self.nodes.append(node)
        return name


def _rows(graph: _Graph, shape: tuple[int, ...], n_features: int) -> str:
    """The observations as rows, in double precision."""
    wide = graph.add("Cast", "obs", name="obs_double", to=graph._onnx.TensorProto.DOUBLE)
    if shape == (n_features,):
        return wide
    flat = graph.table("flat_shape", [-1, n_features], np.int64)
    return graph.add("Reshape", wide, flat, name="rows")


def _experts(graph: _Graph, rows: str, tables: Experts) -> str:
    middle, last = (graph.table(f"axis_{at}", [at], np.int64) for at in (1, 2))
    single = graph.add("Unsqueeze", rows, middle, name="rows_by_expert")
    prototypes = graph.table("prototypes", tables.prototypes)
    difference = graph.add("Sub", single, prototypes, name="difference")
    scaled = graph.add("Div", difference, graph.table("close", tables.scale), name="scaled")
    squares = graph.add("Mul", scaled, scaled, name="squares")
    distance = graph.add("ReduceSum", squares, last, name="distance", keepdims=0)
    closeness = graph.add("Exp", graph.add("Neg", distance, name="exponent"), name="closeness")
    # Not closeness * weights first: a single weight, onnxruntime merges into the MatMul behind it
    # as a number in single precision.
    weights = tables.weights[:, None]
    total = graph.add(
        "MatMul", closeness, graph.table("weights", weights), name="strength_of_experts"
    )
    total = graph.add("Add", total, graph.table("one", 1.0), name="total")
    actions = graph.table("weighted_actions", weights * tables.actions)
    summed = graph.add("MatMul", closeness, actions, name="sum_of_experts")
    default = graph.table("default_action", tables.default)
    return graph.add("Div", graph.add("Add", summed, default, name="sum"), total, name="mean")


def _layers(graph: _Graph, rows: str, tables: Layers) -> str:
    centred = graph.add("Sub", rows, graph.table("feature_mean", tables.mean), name="centred")
    values = graph.add("Div", centred, graph.table("feature_scale", tables.scale), name="scaled")
    for i, (matrix, bias) in enumerate(zip(tables.matrices, tables.biases, strict=True)):
        if i > 0:
            values = graph.add("Tanh", values, name=f"hidden_{i}")
        product = graph.add(
            "MatMul", values, graph.table(f"matrix_{i}", matrix.T), name=f"product_{i}"
        )
        values = graph.add("Add", product, graph.table(f"bias_{i}", bias), name=f"layer_{i}")
    return values


def _clipped(graph: _Graph, mean: str, rows: str, tables: Description, policy: Policy) -> None:
    """The actions: clipped, NaN where an observation is not finite, in their shape."""
    above = graph.add("Max", mean, graph.table("low", tables.low), name="not_below")
    inside = graph.add("Min", above, graph.table("high", tables.high), name="clipped")
    # Zero, or NaN if one of the numbers is not finite.
    zeros = graph.add("Mul", rows, graph.table("zero", 0.0), name="zeros")
    features = graph.table("axis_of_features", [1], np.int64)
    doubt = graph.add("ReduceSum", zeros, features, name="zero_or_nan", keepdims=1)
    sure = graph.add("Add", inside, doubt, name="actions_double")
    if policy.action_shape != (len(policy.action_names),):
        shape = graph.table("action_shape", [-1, *policy.action_shape], np.int64)
        sure = graph.add("Reshape", sure, shape, name="shaped")
    graph.add("Cast", sure, name="actions", to=graph._onnx.TensorProto.FLOAT)


def _metadata(notes: Notes, policy: Policy) -> dict[str, str]:
    return {
        "task": notes.task,
        "learned": notes.learned,
        "policy_sha256": notes.digest,
        "feature_names": json.dumps(policy.feature_names),
        "action_names": json.dumps(policy.action_names),
        "action_low": json.dumps(policy.action_low.tolist()),
        "action_high": json.dumps(policy.action_high.tolist()),
        "units": "the task's own, as the environment gives observations and takes actions",
        "experts": json.dumps(notes.experts),
        "changed_by_hand": json.dumps(notes.changes),
        "not_finite": "an observation with NaN or infinity gives NaN in every action",
    }


def model(description: Description, notes: Notes, policy: Policy) -> bytes:
    """The serialised model; the same policy gives the same bytes."""
    import onnx
    from onnx import TensorProto, helper

    graph = _Graph()
    rows = _rows(graph, policy.observation_shape, len(policy.feature_names))
    if isinstance(description, Experts):
        mean = _experts(graph, rows, description)
    else:
        assert isinstance(description, Layers)
        mean = _layers(graph, rows, description)
    _clipped(graph, mean, rows, description, policy)
    shapes = {"obs": policy.observation_shape, "actions": policy.action_shape}
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape])
        for name, shape in shapes.items()
    ]
    made = helper.make_model(
        helper.make_graph(graph.nodes, notes.name, ends[:1], ends[1:], graph.tables),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="moie",
        producer_version=notes.moie,
        doc_string=f"The policy of {notes.task}: {notes.learned}.",
    )
    helper.set_model_props(made, _metadata(notes, policy))
    onnx.checker.check_model(made, full_check=True)
    return made.SerializeToString(deterministic=True)


def onnx_files(
    description: Description, notes: Notes, vectors: Vectors, policy: Policy
) -> dict[str, bytes]:
    """The model, and its test vectors as JSON."""
    listed = {
        "observations": vectors.observations.reshape(-1, *policy.observation_shape).tolist(),
        "actions": vectors.actions.reshape(-1, *policy.action_shape).tolist(),
        "range": vectors.range.reshape(policy.action_shape).tolist(),
        "tolerance": vectors.tolerance,
    }
    return {
        f"{notes.name}.onnx": model(description, notes, policy),
        f"{notes.name}_vectors.json": as_json(listed),
    }
