"""Build all-MiniLM-L6-v2 as an ONNX graph from its official weights and quantise it to int8, without torch.

The architecture is BERT's encoder (Devlin et al. 2019) with the sizes in the model's ``config.json``. The
sentence vector is the mean over the tokens, scaled to unit length, as the model's ``modules.json`` specifies.

The graph reads one text at a time and has no padding. In a batch, int8 activations are scaled by the largest
one, so a text's vector would depend on the other texts.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]
else:  # heavy: loaded when a model is built
    Array = Any

LAYERS = 6
HEADS = 12
DIMENSIONS = 384
NORM_EPSILON = 1e-12
OPSET = 17
"""The first ONNX operator set with ``LayerNormalization``."""

Weights = Mapping[str, Array]


class _Graph:
    """Collects nodes and constants; each operation has the name of its output value."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: Array | list[int] | float) -> str:
        import numpy as np  # noqa: PLC0415  (heavy, and used once per machine)
        from onnx import numpy_helper  # noqa: PLC0415  (as above)

        kind = {list: np.int64, float: np.float32}.get(type(value))
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(np.array(value, kind)), name))
        return name

    def add(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        from onnx import helper  # noqa: PLC0415  (as above)

        self.nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def dense(self, source: str, weight: Array, bias: Array, output: str) -> str:
        product = self.add(
            "MatMul", [source, self.constant(f"{output}.weight", weight.T)], f"{output}.product"
        )
        return self.add("Add", [product, self.constant(f"{output}.bias", bias)], output)

    def norm(self, source: str, weights: Weights, prefix: str) -> str:
        inputs = [
            source,
            *(self.constant(f"{prefix}.{part}", weights[f"{prefix}.{part}"]) for part in ("weight", "bias")),
        ]
        return self.add("LayerNormalization", inputs, f"{prefix}.out", axis=-1, epsilon=NORM_EPSILON)


def build(weights: Weights) -> Any:
    """Return the model as an ONNX graph in float32.

    The input ``input_ids`` is int64 of shape (1, tokens). The output ``embedding`` is float32 of shape (1,
    384). ``weights`` are the tensors of ``model.safetensors``, by name.
    """
    from onnx import TensorProto, helper  # noqa: PLC0415  (heavy, and used once per machine)

    graph = _Graph()
    for name, value in (
        ("zero", [0]),
        ("one", [1]),
        ("one.float", 1.0),
        ("scale", (DIMENSIONS // HEADS) ** -0.5),
        ("split", [0, 0, HEADS, DIMENSIONS // HEADS]),
        ("merge", [0, 0, DIMENSIONS]),
    ):
        graph.constant(name, value)
    hidden = _embeddings(graph, weights)
    for layer in range(LAYERS):
        hidden = _layer(graph, weights, f"encoder.layer.{layer}", hidden)
    graph.add("ReduceSum", [hidden, "one"], "pooled", keepdims=0)
    # The mean differs from the sum only in length, which the normalisation removes.
    graph.add("LpNormalization", ["pooled"], "embedding", axis=-1, p=2)
    made = helper.make_graph(
        graph.nodes,
        "all-MiniLM-L6-v2",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [1, DIMENSIONS])],
        graph.constants,
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    # Marks the model as prepared; otherwise the quantiser would log a warning at the root logger.
    helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})
    return model


def quantise(source: Path, target: Path) -> None:
    """Write the int8 form of a float32 model: weights per channel, activations at run time.

    Weights use 7 of their 8 bits, because the sums of full int8 products overflow on processors without VNNI.
    """
    # Heavy, and used once per machine.
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415

    quantize_dynamic(source, target, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)


def _embeddings(graph: _Graph, weights: Weights) -> str:
    words = graph.constant("words", weights["embeddings.word_embeddings.weight"])
    # Every token is of the first type, so the two tables of constants are merged into one.
    table = (
        weights["embeddings.position_embeddings.weight"]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    graph.add("Shape", ["input_ids"], "tokens.count", start=1, end=2)
    graph.add("Slice", [graph.constant("positions", table), "zero", "tokens.count", "zero"], "positions.used")
    graph.add("Gather", [words, "input_ids"], "words.used")
    graph.add("Add", ["words.used", "positions.used"], "embedded")
    return graph.norm("embedded", weights, "embeddings.LayerNorm")


def _layer(graph: _Graph, weights: Weights, prefix: str, hidden: str) -> str:
    attended = _attention(graph, weights, f"{prefix}.attention", hidden)
    inner = graph.dense(attended, *_dense(weights, f"{prefix}.intermediate.dense"), f"{prefix}.inner")
    graph.add("Div", [inner, graph.constant(f"{prefix}.root2", 2**0.5)], f"{prefix}.gelu.in")
    graph.add("Erf", [f"{prefix}.gelu.in"], f"{prefix}.gelu.erf")
    graph.add("Add", [f"{prefix}.gelu.erf", "one.float"], f"{prefix}.gelu.sum")
    graph.add("Mul", [inner, f"{prefix}.gelu.sum"], f"{prefix}.gelu.product")
    half = graph.constant(f"{prefix}.half", 0.5)
    gelu = graph.add("Mul", [f"{prefix}.gelu.product", half], f"{prefix}.gelu")
    outer = graph.dense(gelu, *_dense(weights, f"{prefix}.output.dense"), f"{prefix}.outer")
    graph.add("Add", [outer, attended], f"{prefix}.sum")
    return graph.norm(f"{prefix}.sum", weights, f"{prefix}.output.LayerNorm")


def _attention(graph: _Graph, weights: Weights, prefix: str, hidden: str) -> str:
    heads: dict[str, str] = {}
    for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
        name = f"{prefix}.{part}"
        graph.dense(hidden, *_dense(weights, f"{prefix}.self.{part}"), name)
        graph.add("Reshape", [name, "split"], f"{name}.split")
        heads[part] = graph.add("Transpose", [f"{name}.split"], f"{name}.heads", perm=order)
    graph.add("MatMul", [heads["query"], heads["key"]], f"{prefix}.raw")
    graph.add("Mul", [f"{prefix}.raw", "scale"], f"{prefix}.scores")
    graph.add("Softmax", [f"{prefix}.scores"], f"{prefix}.weights", axis=-1)
    graph.add("MatMul", [f"{prefix}.weights", heads["value"]], f"{prefix}.mixed")
    graph.add("Transpose", [f"{prefix}.mixed"], f"{prefix}.mixed.tokens", perm=[0, 2, 1, 3])
    graph.add("Reshape", [f"{prefix}.mixed.tokens", "merge"], f"{prefix}.merged")
    outer = graph.dense(f"{prefix}.merged", *_dense(weights, f"{prefix}.output.dense"), f"{prefix}.outer")
    graph.add("Add", [outer, hidden], f"{prefix}.sum")
    return graph.norm(f"{prefix}.sum", weights, f"{prefix}.output.LayerNorm")


def _dense(weights: Weights, name: str) -> tuple[Array, Array]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]
