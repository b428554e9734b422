# One environment per purpose, made on demand in .venv; every target starts from nothing but Python and make.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := SLOTSTEP_KERNEL=python $(BIN)/pip install --quiet --disable-pip-version-check

PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

# Tests start hundreds of processes: each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo compiled test test-compiled test-slow soak mutants coverage lint bench figures docs site clean

.venv/base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) --editable .
	touch $@

.venv/test: .venv/base constraints.txt
	$(INSTALL) --constraint constraints.txt --editable '.[test]'
	touch $@

.venv/docs: .venv/base
	$(INSTALL) --editable '.[docs]'
	touch $@

compiled: .venv/test
	$(BIN)/python kernel_build.py

demo: .venv/base
	$(BIN)/slotstep compare examples/chat.yaml --policies fcfs,sjf,fair --out out/demo
	@echo
	@echo "Figures of all three: out/demo/timeline.png, latencies.png, ledger.png; each run's own: out/demo/POLICY/"

test: .venv/test
	$(PYTEST) -m "not slow"

# On the compiled kernel: the tests that compare logs, and those that simulate for long; then what compares both kernels.
COMPARE_LOGS := tests/sim tests/policies tests/slotstep/parity tests/slotstep/runs
SIMULATE := tests/reports/statistics tests/test_questions.py tests/calibrate/fit/test_fidelity.py
test-compiled: compiled
	SLOTSTEP_KERNEL=compiled $(PYTEST) -m "not slow or simulation" $(COMPARE_LOGS) $(SIMULATE)
	$(PYTEST) -m "kernels and slow" tests/test_kernel.py tests/sim/service/core

test-slow: .venv/test
	$(PYTEST) -m "property or (slow and not simulation and not kernels)" --hypothesis-profile=thorough

# Random services with everything switched on at random, for an hour or so.
soak: .venv/test
	$(PYTEST) --hypothesis-profile=soak tests/sim/service/test_sim_service_properties.py tests/sim/engine/speculative

# All mutants are tried anew; KEEP=1 goes on with a run that was interrupted, or only reports.
mutants: .venv/test
	$(if $(KEEP),,rm -rf mutants)
	$(BIN)/mutmut run --max-children 2
	$(BIN)/python tests/mutation/report.py

coverage: .venv/test
	$(PYTEST) --cov --cov-report=term

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy kernel_build.py
	$(BIN)/mypy docs/console.py docs/reference.py docs/site.py
	$(BIN)/mypy examples/azure.py examples/figures.py examples/service.py examples/report.py
	$(BIN)/mypy examples/a10g.py examples/admission.py examples/catalogue.py

bench: .venv/base
	$(BIN)/python -m benchmarks $(if $(filter fast,$(BENCH)),--fast)

figures: .venv/base
	$(BIN)/python examples/figures.py

docs: figures
	$(BIN)/python -m docs.reference
	$(BIN)/python -m docs.console

site: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf .venv out mutants
