"""Each stage of a small model as text: equal to its golden file, and equal objects when read back.

The machine is a preset and the instruction set is forced, so that the prints do not depend on
where the tests run.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import small_models

from rooftile.ir import graph, program
from rooftile.ir.tile.text import parse as parse_tile
from rooftile.ir.tile.text import to_text as tile_text
from rooftile.pipeline import Compilation, compile_model


@pytest.fixture(params=["mobile_block", "attention"])
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Compilation:
    monkeypatch.setenv("ROOFTILE_MACHINE", "intel-n100")
    monkeypatch.setenv("ROOFTILE_TARGET", "avx2")
    return compile_model(small_models.models()[request.param])


def test_prints(
    compiled: Compilation, request: pytest.FixtureRequest, golden: Callable[[str, str], None]
) -> None:
    name = request.node.callspec.params["compiled"]
    kernels = "\n".join(tile_text(kernel) for kernel in compiled.kernels.values())
    golden(f"stages/{name}.graph.txt", graph.to_text(compiled.graph))
    golden(f"stages/{name}.regions.txt", graph.regions_to_text(compiled.regions))
    golden(f"stages/{name}.tile.txt", kernels)
    golden(f"stages/{name}.program.txt", program.to_text(compiled.program))


def test_every_text_reads_back_to_an_equal_object(compiled: Compilation) -> None:
    found = graph.parse(graph.to_text(compiled.graph), compiled.graph.constants)
    assert found == compiled.graph
    regions = graph.parse_regions(graph.regions_to_text(compiled.regions))
    assert tuple(regions) == compiled.regions
    for kernel in compiled.kernels.values():
        assert parse_tile(tile_text(kernel)) == kernel
    assert program.parse(program.to_text(compiled.program)) == compiled.program
