# `./do TARGET` installs what a target needs and runs it; `make TARGET` only runs it.

CARGO ?= cargo
FUZZ_SECONDS ?= 600
# Fuzzing needs a nightly compiler.
FUZZ_CARGO ?= $(CARGO) +nightly
MIDFLIGHT = $(CARGO) run --locked --release --quiet -p midflight --

.DEFAULT_GOAL := help
.PHONY: help release demo test lint docs bench fuzz transcripts golden

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

# With cargo's progress: the first time takes minutes.
release:
	@$(CARGO) build --locked --release -p midflight

demo: release ## the main job: schedule a generated workload through the switch and print the delays
	@$(MIDFLIGHT) replay $(ARGS)

test: ## unit, property, transcript and end-to-end tests; then the C core once more under ASan and UBSan
	$(CARGO) test --locked --workspace
	$(CARGO) test --locked -p midflight-dataplane --features sanitize

lint: ## formatting, Clippy, and the C compilers' warnings, all as errors
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	.ci/lint-c

docs: ## the Rust documentation, warnings as errors, and the links of the guide
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps
	.ci/check-links

bench: release ## the core, then the loop of client, switch and executor on this machine
	@$(MIDFLIGHT) bench core
	@$(MIDFLIGHT) bench loop

fuzz: ## every fuzz target for FUZZ_SECONDS (600) each; installs cargo-fuzz
	@$(FUZZ_CARGO) --version >/dev/null || { echo "make fuzz: needs a nightly Rust: rustup toolchain install nightly" >&2; exit 1; }
	@$(CARGO) fuzz --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-fuzz
	@set -e; for target in $$($(FUZZ_CARGO) fuzz list); do \
	    echo "fuzzing $$target for $(FUZZ_SECONDS) s"; \
	    $(FUZZ_CARGO) fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1; \
	done

transcripts: ## regenerate the answers in transcripts/; then read the difference
	UPDATE_TRANSCRIPTS=1 $(CARGO) test --locked -p midflight-dataplane --test transcripts
	git diff --stat -- transcripts

golden: ## regenerate the golden packets; then read the difference
	UPDATE_GOLDEN=1 $(CARGO) test --locked -p midflight-wire --test wire golden
	git diff --stat -- crates/wire/tests/golden
