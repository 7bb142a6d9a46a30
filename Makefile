# Everything does its own set-up: `make run` and `make test` work on a fresh checkout.
#
#   make run        compare ext4, XFS and btrfs on a RAM disk (root), or measure this directory (other users)
#   make test       every test that fits in ten minutes     make test-all    all tests, also slow ones
#   make test-repeat N=20   run the fast tests repeatedly, in random order, also under load
#   make lint       ruff, mypy, rustfmt, clippy             make format      format the code
#   make packages   install every program that any study can use; make run installs only what its study needs
#   make docs       this documentation as a site in target/docs, offline
#   make bench      fslab against its peers, side by side
#   make wheel      wheels for x86-64 and aarch64           make wheel-test   install one without Rust and try it
#
# STUDY=loop-vm chooses another study, FSLAB_ARGS='--budget 1m' adds arguments.

# Everything is made in this directory, or in a cache of the user if the source tree is read-only or another user's.
BUILD ?= $(if $(shell test -w . && echo yes),.,$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/fslab/build)
TARGET := $(BUILD)/target
VENV := $(BUILD)/.venv
UV := $(BUILD)/.tools/bin/uv
READY := $(VENV)/.ready
INSTALLED := $(VENV)/.installed
SOURCES := pyproject.toml uv.lock Cargo.toml Cargo.lock $(shell find engine packaging -type f -not -path '*/target/*' 2>/dev/null)
ROOT := $(filter 0,$(shell id -u))
export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin
STUDY ?= $(if $(ROOT),quick,here)
export UV_PROJECT_ENVIRONMENT := $(VENV)
ifneq ($(BUILD),.)
export CARGO_TARGET_DIR := $(TARGET)
endif
# Container images set it. Every start of fslab, and each of pytest's workers, would then compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-all test-repeat lint format bench docs screenshot packages build-packages server-packages test-packages setup wheel wheel-test

run: build-packages $(INSTALLED)
	@packaging/system-packages.sh $$($(VENV)/bin/fslab doctor $(STUDY) --packages)
	@$(VENV)/bin/fslab run $(STUDY) --report $(TARGET)/report.html $(FSLAB_ARGS)

# Most tests wait as long as they compute: three times as many workers as CPUs (measured: 288 s; 348 s with twice as
# many). Shuffled, so that each has its share of the slow ones, but alike each time; what is alone comes first, and what
# measures last (tests/order.py). make test-repeat changes the order within these parts.
PYTEST := $(VENV)/bin/pytest -q -n $(shell expr 3 \* $$(nproc)) --dist worksteal --randomly-seed=1 --durations=10

# Without the example, which make lint checks, and without examples in documentation: there are none, and to look for
# them, rustdoc reads each crate.
RUST := --lib --bins --tests

# Python's tests wait much of their time: cargo compiles while packages are installed (its second call waits for the
# first) and runs its tests beside Python's; what it says comes at the end. Collected once before in a new clone, the
# tests' modules are compiled once, and not by each worker.
define both
@mkdir -p target; rust=; trap 'kill $$built $$rust 2>/dev/null; exit 130' INT TERM HUP; \
cargo test --workspace $(RUST) --quiet --no-run >/dev/null 2>&1 & built=$$!; \
$(MAKE) --no-print-directory test-packages || { wait; exit 1; }; \
tests/in_memory.sh cargo test --workspace $(RUST) --quiet $(2) >target/cargo-test.log 2>&1 & rust=$$!; \
test -d tests/unit/__pycache__ || $(VENV)/bin/pytest -q --collect-only $(1) >/dev/null; \
$(PYTEST) $(1); python=$$?; wait $$rust; rust=$$?; cat target/cargo-test.log; exit $$((python || rust))
endef

test: setup
	$(call both,-m "not slow")

test-all: setup
	$(call both,,-- --include-ignored)

# Finds tests that depend on order, load or chance: N rounds in random order, the first quarter of them under load.
N ?= 20
test-repeat: setup test-packages
	$(VENV)/bin/python tests/repeat.py $(N) --loaded $(shell expr $(N) / 4)

lint: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	cargo fmt --all --check
	$(VENV)/bin/mypy & mypy=$$!; cargo clippy --workspace --all-targets --quiet -- -D warnings; rust=$$?; \
	wait $$mypy && exit $$rust

format: setup
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	cargo fmt --all

docs: setup
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet
	@echo "target/docs/index.html"

# The first screen of the last campaign's report, as the README shows it.
screenshot: setup test-packages
	$(VENV)/bin/fslab report last -o target/report.html
	chromium --headless $(if $(ROOT),--no-sandbox) --hide-scrollbars --window-size=1200,900 \
	    --virtual-time-budget=5000 --screenshot=docs/report.png target/report.html 2>/dev/null

bench: setup test-packages
	$(VENV)/bin/python benches/report_scale.py
	$(VENV)/bin/python benches/fio_by_hand.py
	$(VENV)/bin/python benches/engine/run.py --engine $(VENV)/bin/fslab-engine --rounds 5 --output target/engine-bench.md

wheel: build-packages | $(UV)
	packaging/wheel.sh $(UV) target/dist

wheel-test: wheel
	packaging/wheel-test.sh $(UV) target/dist

setup: build-packages $(READY)

# What is needed to build and install fslab itself.
build-packages:
	@packaging/system-packages.sh

# Every program that any study can use.
packages: server-packages
	@packaging/system-packages.sh $$($(VENV)/bin/fslab doctor --packages)

# Servers, without what their packages start. Before all other packages, which would include them.
server-packages: setup
	@packaging/postgresql.sh
	@packaging/redis.sh $(VENV)/bin

# All, and what only the tests use: strace, ip for networks of their own, chromium to look at pages.
test-packages: server-packages
	@packaging/system-packages.sh $$($(VENV)/bin/fslab doctor --packages) \
	    $$(command -v strace >/dev/null || echo strace) $$(command -v ip >/dev/null || echo iproute2) \
	    $$(command -v chromium >/dev/null || echo chromium)
	@command -v iozone >/dev/null || packaging/iozone.sh target/iozone || echo "its tests are skipped" >&2

# The engine is compiled while uv is fetched and fetches all else. maturin finds it done: both use the release profile as
# it is, without flags of their own.
define sync
@echo "building and installing fslab: the first time, this takes some minutes"
@cargo build --release --locked --quiet -p fslab-engine & \
{ $(fetch_uv); } && $(UV) sync --locked --quiet $(1); synced=$$?; wait; exit $$synced
endef

fetch_uv = test -x $(UV) || { python3 -m venv $(BUILD)/.tools && \
    $(BUILD)/.tools/bin/pip install --quiet --disable-pip-version-check uv==0.13.8; }

$(UV):
	$(fetch_uv)

# fslab alone; the programs that develop, test and document it come with setup, and stay.
$(INSTALLED): $(SOURCES)
	$(call sync,--no-default-groups --inexact)
	@test $(BUILD) = . || echo "this directory is not writable: fslab is $(VENV)/bin/fslab"
	@touch $@

$(READY): $(SOURCES)
	$(call sync,)
	@touch $@ $(INSTALLED)
