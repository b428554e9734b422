"""Every check passes for the kernels as they are; each of ten kernels with one error fails at least one."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from calibrate.decoder.attention import triton_backend, triton_kernels
from calibrate.decoder.attention.registry import interpreter_breaks
from calibrate.decoder.model import ops_triton
from calibrate.gpu import kernel_checks
from calibrate.gpu.kernel_checks import Case, cases_on, check_attention, check_ops, run_checks, unwritten_is_nan

CPU = torch.device("cpu")
INTERPRETED = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="kernels are interpreted with TRITON_INTERPRET=1"
)

ATTENTION, OPS = triton_kernels, ops_triton
SHARE = "tl.cdiv(tl.cdiv(length, SPLITS), TILE) * TILE"
MUTATIONS = [
    # (the error, its module, what the kernel says, what it says with the error, how often)
    ("every tile of a decode reads the first", ATTENTION, "start // PAGE + tl.arange", "0 * start + tl.arange", 1),
    ("sums are not rescaled", ATTENTION, "mixed * shrink[:, None]", "mixed", 2),
    ("the sum of weights is not rescaled", ATTENTION, "total * shrink", "total", 2),
    ("splits are summed without weights", ATTENTION, "answer * weight[:, None]", "answer", 1),
    (
        "the end of a context is not masked",
        ATTENTION,
        "tl.where(within[None, :],",
        "tl.where(within[None, :] | True,",
        1,
    ),
    ("a chunk sees the next position", ATTENTION, "<= (start + index)", "<= (start + index + 1)", 1),
    ("heads of a chunk read another key head", ATTENTION, "(head // GROUP)", "(head % (HEADS // GROUP))", 1),
    ("the last split is left out", ATTENTION, SHARE, "tl.cdiv(length // (SPLITS + 1), TILE) * TILE", 1),
    ("keys turn the wrong way", OPS, "one * cosine - two * sine", "one * cosine + two * sine", 1),
    ("the last columns of the gate are left out", OPS, "tl.program_id(1) * TILE", "tl.program_id(1) * 0", 1),
]


@pytest.fixture
def mutated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that puts a module with one change in the place of the kernels."""

    def put(module: ModuleType, old: str, new: str, times: int) -> None:
        assert module.__file__ is not None
        source = Path(module.__file__).read_text(encoding="utf-8")
        assert source.count(old) == times
        path = tmp_path / "mutated_kernels.py"
        path.write_text(source.replace(old, new), encoding="utf-8")
        spec = importlib.util.spec_from_file_location("mutated_kernels", path)
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        if module is triton_kernels:
            monkeypatch.setattr(triton_backend, "triton_kernels", made)
        else:
            monkeypatch.setattr("calibrate.decoder.model.ops_triton", made)
            monkeypatch.setitem(sys.modules, "calibrate.decoder.model.ops_triton", made)

    return put


def first_that_fails() -> str | None:
    """The name of the first check of Triton's kernels that does not pass."""
    checks = [lambda: check_ops(CPU, "float32")]
    checks += [
        lambda case=case: check_attention("triton", CPU, "float32", case) for case in cases_on("cpu", "float32")
    ]
    for check in checks:
        found = check()
        if not found["passed"]:
            return found["check"]
    return None


@INTERPRETED
@pytest.mark.slow
def test_the_kernels_pass() -> None:
    assert first_that_fails() is None


@INTERPRETED
@pytest.mark.slow
@pytest.mark.parametrize(("what", "module", "old", "new", "times"), MUTATIONS, ids=[each[0] for each in MUTATIONS])
def test_a_kernel_with_an_error_fails(mutated, what, module, old, new, times) -> None:  # type: ignore[no-untyped-def]
    mutated(module, old, new, times)
    assert first_that_fails() is not None, what


def test_memory_of_a_check_is_not_a_number_until_it_is_written() -> None:
    """A freed result may lie where the next one is allocated: what a kernel leaves out would look right."""
    fill = torch.utils.deterministic.fill_uninitialized_memory
    with unwritten_is_nan():
        assert torch.empty(1000).isnan().all()
        assert torch.empty_like(torch.ones(3)).isnan().all()
        assert torch.ones(3).new_empty(4, 5).isnan().all()
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory is fill


def test_what_is_checked_is_what_is_timed() -> None:
    cases = list(cases_on("cuda", "bfloat16"))
    assert {case.group for case in cases} == {4, 7, 8}
    assert {case.page_size for case in cases} == {16, 32}
    assert {case.splits for case in cases if case.splits} == {1, 2, 64}
    assert {span for case in cases for count, span in case.rows if count == 1} == {0, 63, 64, 65, 2048, 8191}
    assert {case.shape.head_size for case in cases} == {128}
    assert len(list(cases_on("cuda", "float32"))) == 4


def test_the_reference_passes_and_a_wrong_page_is_noticed() -> None:
    found = check_attention("torch", CPU, "float32", Case(4, 2, 16, ((1, 0), (1, 65), (1, 700))))
    assert found["passed"]
    assert found["error"] < 1e-6 < 0.01 < found["error_with_a_wrong_page"]


def test_a_check_that_raises_failed_and_one_that_cannot_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("an illegal memory access")

    monkeypatch.setattr(kernel_checks, "check_ops", broken)
    said: list[object] = []
    operators, flashinfer = run_checks(CPU, ["flashinfer"], ["float32"], said.append)
    assert (operators["passed"], flashinfer["passed"]) == (False, None)
    assert "illegal memory access" in operators["why"]
    assert "flashinfer" in flashinfer["why"]
    assert said == [operators, flashinfer]


@pytest.mark.parametrize(
    ("triton", "numpy", "breaks"),
    [("3.6.0", "2.4.1", True), ("3.6.0", "2.3.5", False), ("3.7.0", "2.5.0", False), ("3.10.0", "2.5.0", False)],
)
def test_an_interpreter_that_breaks_is_known_by_its_version(triton: str, numpy: str, breaks: bool) -> None:
    assert interpreter_breaks(triton, numpy) == breaks
