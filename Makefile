# `./do TARGET` installs what a target needs and runs it; `make TARGET` only runs it.

CARGO ?= cargo
FUZZ_SECONDS ?= 600
# Program whose bugs `make mutants` plants: tasks, store or cache.
PROGRAM ?= tasks
# Occurrences of each fault in `make lab-store`.
RUNS ?= 20
# The real traces, which are not part of the project.
MIDFLIGHT_TRACES ?= $(wildcard ../shared/traces)
# Fuzzing needs a nightly compiler.
FUZZ_CARGO ?= $(CARGO) +nightly
# auto: build these parts if their tools are installed.
KERNEL ?= auto
ILP ?= auto
ifeq ($(filter auto yes no,$(KERNEL)),)
$(error KERNEL is auto, yes or no, and not "$(KERNEL)")
endif
ifeq ($(filter auto yes no,$(ILP)),)
$(error ILP is auto, yes or no, and not "$(ILP)")
endif
ifeq ($(if $(filter bench-against,$(MAKECMDGOALS)),$(AGAINST),unasked),)
$(error bench-against needs another build: make bench-against AGAINST=../before/target/release/midflight-lab)
endif
KERNEL_no =
KERNEL_yes = kernel
ILP_no =
ILP_yes = ilp
# Evaluated once, and only by a target that builds.
KERNEL_auto = $(eval KERNEL_auto := $(shell .ci/features kernel))$(KERNEL_auto)
ILP_auto = $(eval ILP_auto := $(shell .ci/features ilp))$(ILP_auto)
HAS_KERNEL = $(KERNEL_$(KERNEL))
PARTS = $(HAS_KERNEL) $(ILP_$(ILP))
PRODUCT = -p midflight-cli $(addprefix --features midflight-cli/,$(PARTS))
LABORATORY = -p midflight-lab $(addprefix --features midflight-lab/,$(PARTS))
# The tests have a program of their own, midflight-echo.
ALL = --workspace $(addprefix --features midflight-lab/,$(PARTS)) $(if $(HAS_KERNEL),--features midflight-echo/kernel)
TARGET = $(or $(CARGO_TARGET_DIR),target)
RELEASE = $(TARGET)/release
LAB = $(CARGO) run --locked --release --quiet $(LABORATORY) --

.DEFAULT_GOAL := help
.PHONY: help release laboratory demo package test python python-tests wheel properties lint docs bench bench-against bench-python fuzz check-faults check-asic p4 check-store check-cache lab-store mutants figures transcripts golden size

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile
	@echo "  KERNEL=no      behind any of them: without the kernel engine, which is built where its tools are"
	@echo "  ILP=no         the same for the ILP of midflight plan"

# The first build takes minutes.
release: ## the command midflight
	@$(CARGO) build --locked --release $(PRODUCT)

laboratory: ## the command midflight-lab, which measures and checks
	@$(CARGO) build --locked --release $(LABORATORY)

# The demo uses neither the kernel engine nor the ILP.
demo: ## the main job: schedule a generated workload through the switch and print the delays
	@$(CARGO) build --locked --release -p midflight-cli
	@$(RELEASE)/midflight replay $(ARGS)

package: release ## a Debian package of this build, with manual pages, completions and services; installs cargo-deb
	@$(CARGO) deb --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-deb
	@deploy/debian/contents $(RELEASE)/midflight $(RELEASE)/package
	@$(CARGO) deb --locked --package midflight-cli --no-build --strip

SEEDS ?= 10

# An environment with the Python package and its tests' requirements.
python: ## the Python package in an environment of its own (target/python), and its tests
	@CARGO="$(CARGO)" FEATURES="$(addprefix --features midflight-cli/,$(PARTS))" .ci/python $(ARGS)

# With the tests' build, only PyO3 and the native part are compiled. Without --tests, cargo chooses other features for shared crates.
python-tests: ## the same with the build of the tests; skips without Python 3.11 or a registry
	@CARGO="$(CARGO)" PROFILE=dev .ci/python --may-skip --wheel --all "$(ALL) --tests --lib --bins"

wheel: release ## a wheel of the Python package (target/wheels), tried in an environment of its own
	@CARGO="$(CARGO)" .ci/python wheel

properties: ## the property tests of the protocols and the core SEEDS (10) times, each time with other random cases
	@set -e; for run in $$(seq $(SEEDS)); do seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); \
	    echo "PROPTEST_RNG_SEED=$$seed"; \
	    PROPTEST_RNG_SEED=$$seed nice $(CARGO) test --locked --release --quiet $(addprefix -p midflight-,wire endpoint tasks store cache asic spec rmt sim); \
	done

# Property tests use the same cases each time; `make properties` draws others.
test mutants: export PROPTEST_RNG_SEED ?= 1

test: ## unit, property, transcript and end-to-end tests; then the C core once more under ASan and UBSan
	@CARGO="$(CARGO)" .ci/run-tests --sanitize-core $(ALL)

# Packages with a feature for the kernel engine or the ILP.
WITHOUT = -p midflight $(addprefix -p midflight-,cli dataplane echo host lab placement spec)

lint: ## formatting, Clippy (with and without the kernel engine and the ILP), and the C compilers' warnings, all as errors
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy --locked $(ALL) --all-targets -- -D warnings
	$(if $(PARTS),$(CARGO) clippy --locked $(WITHOUT) --all-targets -- -D warnings)
	.ci/lint-c

docs: ## the Rust documentation, warnings as errors, and the links of the guide
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked $(ALL) --no-deps
	.ci/check-links

# Benchmarks for this machine; the argument is appended to each.
define benchmarks
@$(LAB) bench core $(1)
@$(LAB) bench loop $(1)
@if [ "$$(id -u)" != 0 ]; then echo "SKIPPED: bench xdp and bench lab, which need root" >&2; exit; fi; \
set -e; $(if $(HAS_KERNEL),$(LAB) bench xdp $(1);) $(LAB) bench lab $(1)
endef

bench: laboratory ## the core, then client, switch and executor on this machine; as root also the kernel engine, and a lab
	$(call benchmarks,)

bench-against: laboratory ## the same in turns with the build AGAINST=PATH: is this one slower? twenty minutes
	$(call benchmarks,--against "$(AGAINST)" $(ARGS))

# Needs both from one build, in the same folder.
bench-python: ## calls of Python functions, and programs, beside joblib, Dask and Ray, which it installs; twelve minutes
	@$(CARGO) build --locked --release -p midflight-python $(LABORATORY)
	@$(RELEASE)/midflight-lab bench python --work-dir $(TARGET)/bench-python $(ARGS)

fuzz: ## every fuzz target for FUZZ_SECONDS (600) each; installs cargo-fuzz
	@$(FUZZ_CARGO) --version >/dev/null || { echo "make fuzz: needs a nightly Rust: rustup toolchain install nightly" >&2; exit 1; }
	@$(CARGO) fuzz --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-fuzz
	@set -e; for target in $$($(FUZZ_CARGO) fuzz list); do \
	    echo "fuzzing $$target for $(FUZZ_SECONDS) s"; \
	    $(FUZZ_CARGO) fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1; \
	done

check-faults: ## 10,000 small clusters under all kinds of faults, held to the rules; takes half a minute
	@nice $(LAB) sim check tasks --seeds 10000 $(ARGS)

check-asic: ## every state of small queues of the asic engine, then with planted defects; a minute, with ARGS=--full a quarter of an hour
	@nice $(LAB) check asic $(ARGS)
	@nice $(LAB) check asic --planted

# Exit code 3: a tool is missing.
p4: laboratory ## the P4 programs: compile, run in BMv2, compare with the model; as root; needs p4c and BMv2, else it says what is missing
	@nice $(LAB) check p4 $(ARGS) || [ $$? -eq 3 ]

check-store: ## every state of the model of the store's protocol; minutes, with ARGS=--quick seconds
	@nice $(LAB) check store $(ARGS)

check-cache: ## every state of the model of the cache's controllers, then with planted errors; minutes
	@nice $(CARGO) test --locked --release -p midflight-spec --test cache_control -- --include-ignored --nocapture

lab-store: laboratory ## a store in a lab whose parts fail, RUNS (20) times each; as root: almost an hour
	@nice $(LAB) faults --runs $(RUNS) $(ARGS)

# Without the ILP: it has no planted bugs, and its solver compiles as long as all the rest. One build for command and tests, as two would
# choose different features and compile shared crates twice. A test of the command makes cargo build the command.
MUTANTS = $(TARGET)/mutants/built.json
BEYOND = -p midflight-wire -p midflight-spec -p midflight-host --lib --test wire --test frames --test addresses

mutants: ## plant known bugs, one at a time, and see check-faults or a test find each; a build of its own
	@mkdir -p $(dir $(MUTANTS))
	@nice $(CARGO) test --locked --no-run --profile mutants --message-format=json-render-diagnostics \
	    -p midflight-lab --test usage $(BEYOND) --features midflight-lab/mutants $(addprefix --features midflight-lab/,$(HAS_KERNEL)) >$(MUTANTS)
	@nice $$(sed -n 's/.*"executable":"\([^"]*\/midflight-lab\)".*/\1/p' $(MUTANTS)) sim mutants $(PROGRAM) --tests $(MUTANTS) $(ARGS)

# docs/figures/cells has a sample of the cells, for `sim figure --recheck`; all cells take eight hours on two cores.
figures: ## the papers' figures again into docs/figures; goes on where it was
	@$(if $(MIDFLIGHT_TRACES),MIDFLIGHT_TRACES="$(MIDFLIGHT_TRACES)") nice $(LAB) sim figure falcon bolt scale asic netrs --out docs/figures --cells $(TARGET)/figures/cells $(ARGS)
	@nice $(LAB) sim figure flair --out docs/figures/store --cells $(TARGET)/figures/cells $(ARGS)

transcripts: ## regenerate the answers in transcripts/; then read the difference
	UPDATE_TRANSCRIPTS=1 $(CARGO) test --locked -p midflight-spec --test transcripts
	git diff --stat -- transcripts

golden: ## regenerate the golden packets; then read the difference
	UPDATE_GOLDEN=1 $(CARGO) test --locked -p midflight-wire --test wire golden
	git diff --stat -- crates/wire/tests/golden

size: ## lines of each room, words of the guides, crates and bytes of the command
	@.ci/size
