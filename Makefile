# Targets for people; `make help` lists them. Needs Rust, Python 3 with pip, and Node 20; whatever
# else a target needs it fetches itself and says so.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

.PHONY: help demo test test-full fmt lint deny drivers openapi bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## show a handoff that is lost, and one that Baton keeps, on a real MongoDB
	@demo/run

test: fmt lint deny drivers ## run every check and test that needs no more than Rust, Python and Node
	cargo test --locked
	@$(MAKE) openapi

test-full: test ## the same, and what needs Chromium (Debian's package, or CHROMIUM)
	cargo test --locked --test integration frontend -- --ignored

fmt: ## fail where the code is not formatted
	cargo fmt --check

lint: ## fail on any warning of the compiler's or clippy's
	cargo clippy --locked --all-targets -- --deny warnings

deny: ## check the dependencies: licences, sources, bans
	"$$(tests/tools/cargo-deny)" --locked --log-level error check bans licenses sources

drivers: ## check the scripts of the demo and those that drive LibreChat's own data layer
	tests/tools/npm tests/librechat
	cd tests/librechat && node --test check.mjs

openapi: ## hold the API against its own description, with schemathesis
	cargo test --locked --test integration -- --ignored http::openapi

bench: ## time switch_agent and PATCH next to their bare writes (needs wrk: apt-get install wrk)
	cargo bench --locked --bench switch_agent
	cargo bench --locked --bench patch

clean: ## remove what was built and fetched
	cargo clean
	rm -rf .cache tests/*/node_modules tests/*/.install.lock
