"""The MiniLM encoder (BERT: Devlin et al. 2019; distilled: Wang et al. 2020) written as an ONNX graph.

Built from the published weights node by node, so that neither PyTorch nor an exporter is needed. The
graph uses ONNX Runtime's fused operators and yields one vector per token; pooling is the caller's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

INPUT_IDS = "input_ids"
TOKEN_EMBEDDINGS = "token_embeddings"  # noqa: S105  (a tensor's name)

REVISION = 1
"""Raised with every change of the graph or its quantisation: converted weights are cached under it."""

FUSED = "com.microsoft"
"""Operator domain of ONNX Runtime's fused transformer operators."""

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """What of the published `config.json` decides the graph."""

    hidden: int
    heads: int
    layers: int
    epsilon: float

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "EncoderShape":
        """Read the shape from a BERT `config.json`.

        Raises:
            KeyError: a field is missing.
        """
        return cls(
            hidden=int(config["hidden_size"]),
            heads=int(config["num_attention_heads"]),
            layers=int(config["num_hidden_layers"]),
            epsilon=float(config["layer_norm_eps"]),
        )


@dataclass(slots=True)
class _Graph:
    """Nodes and constants in the making; both methods return the name of the tensor they made."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(
        self, operator: str, inputs: list[str], output: str, *, domain: str = "", **attributes: Any
    ) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output


def build_encoder(weights: Weights, shape: EncoderShape) -> onnx.ModelProto:
    """Return the float32 encoder.

    Input: `input_ids`, int64 (batch, sequence), a sequence no longer than the position table (512).
    Output: `token_embeddings`, float32 (batch, sequence, hidden): the last layer's state of each token.
    There is no mask, so nothing may be padded: the sequences of a batch have one length.

    Raises:
        KeyError: a tensor of the published model is missing.
    """
    graph = _Graph()
    state = _embeddings(graph, weights, shape)
    for index in range(shape.layers):
        last = index == shape.layers - 1
        state = _layer(graph, weights, shape, index, state, TOKEN_EMBEDDINGS if last else f"layer{index}")
    integer, real = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "minilm",
            [helper.make_tensor_value_info(INPUT_IDS, integer, ["batch", "sequence"])],
            [helper.make_tensor_value_info(TOKEN_EMBEDDINGS, real, ["batch", "sequence", shape.hidden])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)],
    )
    model.ir_version = 9  # the one of opset 17: the library's default may be newer than the runtime reads
    # the quantiser asks for a pass that fuses and infers shapes; this graph is written fused
    helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})
    return model


def quantize(encoder: Path, target: Path) -> None:
    """Write the int8 encoder: weights int8 per channel, activations quantised at run time.

    The range of an activation is taken over a whole tensor, so what shares a batch with a text moves
    its vectors (measured: cosine down to 0.98). Run one sequence at a time and nothing does.
    """
    quantize_dynamic(
        encoder,
        target,
        weight_type=QuantType.QInt8,
        per_channel=True,
        reduce_range=True,  # 7-bit weights: CPUs without VNNI saturate on 8
        extra_options={
            "DefaultTensorType": onnx.TensorProto.FLOAT
        },  # shapes of fused operators are not inferred
    )


def _embeddings(graph: _Graph, weights: Weights, shape: EncoderShape) -> str:
    """Word + position + type (always 0: one segment), normalised."""
    words = graph.constant("words", weights["embeddings.word_embeddings.weight"])
    positions = graph.constant("positions", weights["embeddings.position_embeddings.weight"])
    zero, one, two = (graph.constant(f"index{i}", np.array([i], dtype=np.int64)) for i in range(3))
    shaped = graph.node("Shape", [INPUT_IDS], "input_shape")
    length = graph.node("Slice", [shaped, one, two], "sequence_length")
    state = graph.node(
        "Add",
        [
            graph.node("Gather", [words, INPUT_IDS], "word_vectors"),
            graph.node("Slice", [positions, zero, length], "position_vectors"),
        ],
        "placed_words",
    )
    segment = graph.constant("segment", weights["embeddings.token_type_embeddings.weight"][0])
    return graph.node(
        "LayerNormalization",
        [
            graph.node("Add", [state, segment], "embedding_sum"),
            graph.constant("embedding_scale", weights["embeddings.LayerNorm.weight"]),
            graph.constant("embedding_shift", weights["embeddings.LayerNorm.bias"]),
        ],
        "embedded",
        axis=-1,
        epsilon=shape.epsilon,
    )


def _layer(graph: _Graph, weights: Weights, shape: EncoderShape, index: int, state: str, output: str) -> str:
    """One transformer layer: self-attention, then the feed-forward net, each with residual and norm."""

    def weight(name: str) -> NDArray[np.float32]:
        return weights[f"encoder.layer.{index}.{name}"]

    def constant(name: str, value: NDArray[np.float32]) -> str:
        return graph.constant(f"layer{index}.{name}", value)

    def matmul(inputs: str, name: str) -> str:
        # PyTorch keeps a linear layer's weight as (out, in)
        return graph.node(
            "MatMul", [inputs, constant(f"{name}.weight", weight(f"{name}.weight").T)], f"layer{index}.{name}"
        )

    def add_and_norm(inputs: str, residual: str, name: str, result: str) -> str:
        return graph.node(
            "SkipLayerNormalization",
            [
                inputs,
                residual,
                constant(f"{name}.norm.scale", weight(f"{name}.LayerNorm.weight")),
                constant(f"{name}.norm.shift", weight(f"{name}.LayerNorm.bias")),
                constant(f"{name}.bias", weight(f"{name}.dense.bias")),
            ],
            result,
            domain=FUSED,
            epsilon=shape.epsilon,
        )

    parts = ("query", "key", "value")
    attended = graph.node(
        "Attention",
        [
            state,
            constant("qkv", np.concatenate([weight(f"attention.self.{p}.weight").T for p in parts], axis=1)),
            constant("qkv.bias", np.concatenate([weight(f"attention.self.{p}.bias") for p in parts])),
        ],
        f"layer{index}.attended",
        domain=FUSED,
        num_heads=shape.heads,
    )
    attention = add_and_norm(
        matmul(attended, "attention.output.dense"), state, "attention.output", f"layer{index}.attention"
    )
    activated = graph.node(
        "BiasGelu",
        [
            matmul(attention, "intermediate.dense"),
            constant("intermediate.bias", weight("intermediate.dense.bias")),
        ],
        f"layer{index}.activated",
        domain=FUSED,
    )
    return add_and_norm(matmul(activated, "output.dense"), attention, "output", output)
