"""A graph that torchair has dumped: its nodes, and the arguments that they copy or write to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import text_format
from torchair._ge_concrete_graph.ge_ir_pb2 import GraphDef
from torchair.ge._ge_graph import ge_type_to_torch_type

_NOT_COMPUTING = ("Data", "Const", "NetOutput")
_COPYING = ("TensorMove", "Identity")
# Types that write to inputs without declaring it in their IR.
_WRITTEN_SILENTLY = {
    "SparseAttentionPto": ("x10", "x11", "x19"),
    "LightningIndexerPrologPto": ("x13", "x14"),
}


class GeGraph:
    """One dumped graph."""

    def __init__(self, folder: str, stage: str) -> None:
        """Read the one dump in `folder` of a stage: "original", or "optimized" by torchair."""
        (dump,) = Path(folder).glob(f"dynamo_{stage}_graph_*.txt")
        graph = text_format.Parse(dump.read_text(encoding="utf-8"), GraphDef())
        self._nodes = {node.name: node for node in graph.op}
        (self._output,) = (node for node in graph.op if node.type == "NetOutput")

    def nodes(self) -> list[dict[str, Any]]:
        """The nodes that compute: type, source of each input, names of outputs, attributes."""
        return [
            {
                "type": node.type,
                "inputs": {name: self._source(tensor) for name, tensor in _inputs(node).items()},
                "outputs": [desc.name for desc in node.output_desc],
                "attributes": _attributes(node),
            }
            for node in self._nodes.values()
            if node.type not in _NOT_COMPUTING
        ]

    def copied_arguments(self) -> list[str]:
        """The arguments that nodes copy as a whole."""
        roots = {
            self._root(_inputs(node)["x"]) for node in self._nodes.values() if node.type in _COPYING
        }
        return sorted(str(self._source(root)) for root in roots if self._is_argument(root))

    def written_arguments(self) -> list[str]:
        """The arguments that nodes write to, or to copies of; only of nodes that an output needs.

        Raises:
            AssertionError: a node writes and no output needs it, or an output is an argument of
                which nothing says that it is taken after the node that writes to it.
        """
        needed = self._needed_by(self._output)
        writers: dict[str, set[str]] = {}
        for node in self._nodes.values():
            for tensor in _written_tensors(node):
                assert node.name in needed, f"no output needs {node.name}, which writes"
                writers.setdefault(self._root(tensor), set()).add(node.name)
        for tensor in _inputs(self._output).values():
            behind = self._needed_by(self._nodes[_producer(tensor)])
            missing = writers.get(self._root(tensor), set()) - behind
            assert not missing, f"the output {tensor} may be taken before {missing} wrote to it"
        assert all(self._is_argument(root) for root in writers), writers
        return sorted(str(self._source(root)) for root in writers)

    def _is_argument(self, tensor: str) -> bool:
        return bool(self._nodes[_producer(tensor)].type == "Data")

    def _source(self, tensor: str) -> str | None:
        """Where a tensor comes from: an argument or a type of node, and in what form."""
        if not tensor:
            return None
        node = self._nodes[_producer(tensor)]
        if node.type == "Data":
            return f"argument {node.attr['index'].i}"
        if node.type == "Cast":
            dtype = str(ge_type_to_torch_type(node.attr["dst_type"].i)).removeprefix("torch.")
            return f"{self._source(_inputs(node)['x'])} as {dtype}"
        if node.type == "TensorMove":
            return f"copy of {self._source(_inputs(node)['x'])}"
        if node.type == "Reshape":
            return f"{self._source(_inputs(node)['x'])} reshaped"
        output = node.output_desc[int(tensor.rpartition(":")[2])].name
        if output in _inputs(node):
            return f"{self._source(_inputs(node)[output])} after {node.type}"
        return str(node.type) if len(node.output_desc) == 1 else f"{node.type}.{output}"

    def _root(self, tensor: str) -> str:
        """The tensor that this one is a copy, or a later state, of."""
        node = self._nodes[_producer(tensor)]
        inputs = _inputs(node)
        if node.type in _COPYING:
            return self._root(inputs["x"])
        name = node.output_desc[int(tensor.rpartition(":")[2])].name if node.type != "Data" else ""
        return self._root(inputs[name]) if name in inputs else tensor

    def _needed_by(self, node: Any) -> set[str]:
        """The names of the nodes that a node needs through data or control edges, and its own."""
        found: set[str] = set()
        waiting = [node.name]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += [_producer(tensor) for tensor in self._nodes[name].input if tensor]
        return found


def _producer(tensor: str) -> str:
    return tensor.rpartition(":")[0]


def _inputs(node: Any) -> dict[str, str]:
    """The tensors that go into a node, by name; "" for what is absent."""
    if node.type == "Data":
        return {}
    tensors = [tensor for tensor in node.input if not tensor.endswith(":-1")]
    return dict(zip((desc.name for desc in node.input_desc), tensors, strict=True))


def _written_tensors(node: Any) -> list[str]:
    """The tensors that a node writes to: an output of the same name is the tensor afterwards."""
    inputs = _inputs(node)
    names = [desc.name for desc in node.output_desc if desc.name in inputs]
    return [inputs[name] for name in (*names, *_WRITTEN_SILENTLY.get(node.type, ()))]


def _attributes(node: Any) -> dict[str, Any]:
    """The attributes of a node's IR; torchair's own begin with an underscore."""
    values = {
        name: getattr(value, value.WhichOneof("value"))
        for name, value in node.attr.items()
        if not name.startswith("_")
    }
    return {
        name: value.decode() if isinstance(value, bytes) else value
        for name, value in values.items()
        if isinstance(value, bytes | int | float | bool | str)
    }
