# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
#
# Everything runs in the environment that `make setup` makes: ROS 2 from PyPI (Jazzy, or what ROS_DISTRO_WHEELS names), or the
# ROS 2 that this shell has sourced.
SHELL := /bin/sh
PYTHON ?= python3
DURATION ?= 10
ENTER := . ./scripts/env.sh
# Separates simultaneous runs: each has a ROS domain of its own, on this machine only. The ports of ids above 101 overlap
# with the ephemeral ports of Linux.
APART = ROS_DOMAIN_ID=$$(( $$$$ % 101 + 1 )) ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST

# A process that has finished takes tests of the others.
PROCESSES ?= auto
SIDE_BY_SIDE = -n $(PROCESSES) --dist worksteal
# Also if the shell disables it: written bytecode halves the time that each of the programs under test takes to start
# (0.7 of 1.4 s, some 600 starts).
CACHED = PYTHONDONTWRITEBYTECODE=

.PHONY: help setup setup-all test test-all coverage demo bench bench-quick lint format docs dist clean

help:
	@echo 'make setup     install ROS 2, libraries, the messages and this package; ROS_DISTRO_WHEELS=kilted for Kilted;'
	@echo '               STACKS=1 with the messages of autonomy stacks (minutes)'
	@echo 'make test      setup, then the tests (six minutes of CPU); TESTS="test/test_x.py -k name" selects tests'
	@echo 'make test-all  like test, with the thorough tests and more random inputs, as in CI'
	@echo 'make coverage  like test, and measure the coverage of the package'
	@echo 'make demo      setup, then run simulator and node and record a bag; DURATION=60 (s) for longer; SUMO=1 with'
	@echo '               SUMO as the simulator (installs 0.3 GB); DRIVE=1 drives the ego along a line;'
	@echo '               CARLA=1 with the mock server of CARLA 0.9 as the simulator (installs 0.2 GB)'
	@echo 'make bench     setup, then the benchmark'
	@echo 'make bench-quick  setup, then a benchmark of two minutes; fails if a figure is a quarter worse than'
	@echo '               stored; STORE=1 stores the figures'
	@echo 'make lint      setup, then ruff, mypy and the installed ament linters'
	@echo 'make format    setup, then let ruff fix the order of imports, quotes and trailing whitespace'
	@echo 'make dist      build wheel and source distribution in dist, check both, and try each in an empty environment'
	@echo 'make docs      build the site of the documentation in build/doc; warnings and dead links are errors'
	@echo 'make clean     remove everything that setup, test and demo created'

setup:
	@command -v $(PYTHON) >/dev/null || { echo 'error: $(PYTHON): found none; expected Python 3.10 or newer' >&2; exit 1; }
	@$(PYTHON) scripts/set_up.py $(if $(SUMO),--extra sumo) $(if $(CARLA),--extra carla9) $(if $(STACKS),--stacks)

# The tests and the linters need the optional libraries, too.
setup-all:
	@command -v $(PYTHON) >/dev/null || { echo 'error: $(PYTHON): found none; expected Python 3.10 or newer' >&2; exit 1; }
	@$(PYTHON) scripts/set_up.py --extra datasets --extra video --extra sumo --extra carla9 --extra evaluate --extra view $(if $(PROGRAMS),--extra programs) $(if $(STACKS),--stacks)

# With the messages of autonomy stacks: prerequisites inherit it.
test test-all coverage: STACKS = 1
# And the programs of simulators.
test-all: PROGRAMS = 1

test: setup-all
	@$(ENTER) && $(APART) $(CACHED) pytest $(SIDE_BY_SIDE) $(TESTS)

test-all: setup-all
	@$(ENTER) && $(APART) $(CACHED) pytest $(SIDE_BY_SIDE) --budget 8 $(TESTS)

coverage: setup-all
	@$(ENTER) && $(APART) $(CACHED) pytest $(SIDE_BY_SIDE) --cov --cov-report=term $(TESTS)

demo: setup
	@$(ENTER) && $(APART) $(CACHED) python3 scripts/demo.py --duration $(DURATION) $(if $(SUMO),--simulator sumo) $(if $(CARLA),--simulator carla) $(if $(DRIVE),--drive)

bench: setup-all
	@$(ENTER) && $(APART) $(CACHED) python3 bench/run.py

bench-quick: setup-all
	@$(ENTER) && $(APART) $(CACHED) python3 bench/quick.py $(if $(STORE),--store)

# The linters of ament are part of a full ROS 2, except two that PyPI has.
AMENT_LINTERS = 'ament_flake8 $(PYTHON_FOLDERS) setup.py' 'ament_pep257 state_sensor_ros launch' \
  'ament_copyright $(PYTHON_FOLDERS) cmake' 'ament_xmllint package.xml' 'ament_lint_cmake CMakeLists.txt'
PYTHON_FOLDERS = state_sensor_ros launch test bench scripts examples
lint: setup-all
	@$(ENTER) && ruff check . && mypy --strict state_sensor_ros && hadolint Dockerfile \
	  && check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml \
	  && check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/defect.yml .github/ISSUE_TEMPLATE/wish.yml \
	  && check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff \
	  && for linter in $(AMENT_LINTERS); do \
	    if command -v $${linter%% *} >/dev/null; then $$linter >.lint.log 2>&1 || { grep -vE '^(\* |checking )' .lint.log; exit 1; }; \
	    else echo "lint: $${linter%% *} skipped: part of a full ROS 2"; fi; done

format: setup-all
	@$(ENTER) && ruff check --fix --exit-zero .

# Needs no ROS and no compiler. Of the libraries only those are installed that mocks cannot replace (doc/generated.py).
docs: .venv-docs/stamp
	@rm -rf build/doc
	@.venv-docs/bin/sphinx-build -q -n -W --keep-going -d build/doc/.doctrees doc build/doc
	@.venv-docs/bin/python3 doc/check_links.py build/doc
	@echo 'documentation: build/doc/index.html'

.venv-docs/stamp: requirements/docs.txt requirements/run.txt
	@echo 'docs: installing Sphinx into .venv-docs'
	@$(PYTHON) -m venv --clear .venv-docs
	@.venv-docs/bin/python3 -m pip install -q --disable-pip-version-check --no-input -r requirements/docs.txt msgspec numpy \
	  -c requirements/run.txt
	@touch $@

# Needs no ROS and no compiler.
TRIAL = from state_sensor_ros import open_recording; from state_sensor_ros.small_files import share_file; \
  print(len(open_recording(share_file("resource", "sample.v2.json"))), "frames read")
dist:
	@rm -rf dist && $(PYTHON) -m venv --clear .venv-release
	@.venv-release/bin/pip install -q --disable-pip-version-check -r requirements/release.txt
	@.venv-release/bin/python3 -m build --outdir dist . >/dev/null && .venv-release/bin/twine check --strict dist/*
	@for each in dist/*; do echo "dist: $$each" && $(PYTHON) -m venv --clear .venv-release/trial \
	  && .venv-release/trial/bin/pip install -q --disable-pip-version-check $$each && cd .venv-release/trial \
	  && env -u PYTHONPATH bin/state_sensor --version && env -u PYTHONPATH bin/python3 -c '$(TRIAL)' && cd ../.. || exit 1; done

clean:
	rm -rf .venv-* .setup .lint.log build install log demo dist *.egg-info .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
