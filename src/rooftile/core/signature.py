"""What a model takes and gives, and what it says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

NO_VERSION = (1 << 63) - 1
"""The version of a model that has none, as for onnxruntime."""


@dataclass(frozen=True)
class Argument:
    """An input or output. A dim is an int, the name of a symbol, or None where nothing is known.

    `type` is written as onnxruntime writes it: "tensor(float)". `denotations`: what the dims mean,
    such as "DATA_BATCH"; empty where the file does not say. `ranked`: False where the file gives no
    shape at all, which then is () here.
    """

    name: str
    shape: tuple[int | str | None, ...]
    type: str
    denotations: tuple[str, ...] = ()
    ranked: bool = True


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs in the order of the file, initializers that a run may give other values
    (`overridable`), and what the file says about itself."""

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    graph_name: str = ""
    graph_description: str = ""
    description: str = ""
    domain: str = ""
    producer_name: str = ""
    version: int = NO_VERSION
    custom_metadata_map: dict[str, str] = field(default_factory=dict)
    overridable: tuple[Argument, ...] = ()

    def record(self) -> dict[str, Any]:
        """The signature as values that JSON holds."""
        return asdict(self)

    @staticmethod
    def of_record(record: Mapping[str, Any]) -> Signature:
        """What `record` gave; TypeError or KeyError for anything else."""
        arguments = {
            key: tuple(_argument(item) for item in record[key])
            for key in ("inputs", "outputs", "overridable")
        }
        return Signature(**{**record, **arguments})


def _argument(record: Mapping[str, Any]) -> Argument:
    lists = {key: tuple(record[key]) for key in ("shape", "denotations")}
    return Argument(**{**record, **lists})
