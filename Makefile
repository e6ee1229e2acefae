# Each target does all the set-up it needs; see scripts/ for what that is.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup build test lint demo bench clean

EPISODES ?=
TASK ?=
MEMORY ?=
POLICY ?=
NAME ?= signature
OPTIONS ?=
PYTEST ?=

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## /  make \1\t/' | expand -t 14

setup:  ## system packages, .venv and pinned Python packages (PYTHON=... picks the interpreter)
	@scripts/setup.sh

build: setup  ## messages and package, by colcon
	@scripts/build.sh

test: build  ## the whole suite, three tests at a time (PYTEST="-n 0 -k name" passes options on; -n 0: in one process)
	@# Hundreds of processes would compile everything anew where no bytecode is kept.
	@env -u PYTHONDONTWRITEBYTECODE scripts/run.sh python -m pytest -n 3 $(PYTEST)

lint: build  ## ruff, mypy and the import table
	@scripts/lint.sh

demo: build  ## memories side by side over ROS 2 topics (EPISODES=20 TASK=colour MEMORY=trace POLICY=diffusion)
	@scripts/run.sh python -m trace_memory_ros.cli.main demo $(if $(EPISODES),--episodes $(EPISODES)) $(if $(TASK),--task $(TASK)) $(if $(MEMORY),--memory $(MEMORY)) $(if $(POLICY),--policy $(POLICY))

bench: build  ## one benchmark (NAME=signature OPTIONS=--quick)
	@scripts/run.sh python -m trace_memory_ros.cli.main bench $(NAME) $(OPTIONS)

clean:  ## remove what was built and measured; .venv stays
	rm -rf build install log out
