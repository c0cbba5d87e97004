# Makefile -- the commands of the project; `make help` lists them.

PREFIX     ?= /usr/local
SYSCONFDIR ?= /etc
DESTDIR    ?=
# `make run CONFIG=FILE`: that configuration, and no simulator.
CONFIG     ?=
# `make test-fresh RELEASE=bookworm|trixie AS=root|user`, and of its tasks `run` and `test` those; `make deb RELEASE=...`.
RELEASE    ?=
AS         ?= user
TASKS      ?=
# `make simulate SEEDS=N`, `make simulate-fleet SEEDS=N`: the number of lives.
SEEDS      ?= 20
# `make soak HOURS=N`, or MINUTES=N.
HOURS      ?= 1
MINUTES    ?=

UNITDIR  = $(PREFIX)/lib/systemd/system
PLACES   = DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' SYSCONFDIR='$(SYSCONFDIR)' UNITDIR='$(UNITDIR)'
SOURCES  = Package.swift Sources Tests Fuzz

.DEFAULT_GOAL := build
.PHONY: help run build test test-clock test-clients dashboard-pictures test-system test-fresh simulate simulate-fleet sanitize check format fuzz bench-setup bench bench-hostile soak chaos compare install uninstall deb clean

help: ## this list
	@echo 'Start here: make run, make test. All targets:'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

run: build ## build, then run httpdnsd with the simulator on 127.0.0.1:5300; CONFIG=FILE: that configuration alone
	@# Whatever ends make, also a signal that it cannot pass on, ends the script.
	@exec setpriv --pdeathsig TERM Scripts/run $(if $(CONFIG),'$(CONFIG)')

build: ## install what is missing, build the release into .build/bin
	@Scripts/build

test: ## install what is missing, build and run every test; TESTS='--filter NAME' for some
	@Scripts/test $(TESTS)

test-clock: ## build and run the tests that judge real time, one at a time (Tests/by-the-clock.txt)
	@Scripts/test --clock

test-clients: ## kdig, curl, testssl.sh, Chromium, resolved, proxies and forwarders ask over TLS and HTTPS, and a browser shows the dashboard, as root; ONLY='curl ...' for some
	@Scripts/test-clients $(ONLY)

dashboard-pictures: ## make the pictures of docs/dashboard.md again, as root: 9 minutes
	@Scripts/dashboard-pictures

test-system: ## boot machines and try units, packages, upgrades, a fleet and the image there, as root; ONLY='NAME ...' for some
	@Scripts/test-system $(ONLY)

test-fresh: ## both commands of the README on a fresh Debian, as root: RELEASE=bookworm|trixie AS=root|user; TASKS='run' for one
	@Tests/System/fresh-test '$(or $(RELEASE),trixie)' '$(AS)' $(TASKS)

simulate: ## live through SEEDS=N simulated weeks with an outage an hour, each from a seed of its own
	@Scripts/simulate $(SEEDS)

simulate-fleet: ## requests of fleets with a store and without one, then SEEDS=N hours of ten daemons whose store fails
	@Scripts/simulate-fleet $(SEEDS)

sanitize: ## unit tests under AddressSanitizer, then ThreadSanitizer; ONLY='address' or 'thread' for one: half an hour each
	@Scripts/sanitize $(ONLY)

check: ## formatting, layers, file sizes, links, warnings
	@Scripts/check

format: ## put the sources into the project's format
	swift format format --in-place --parallel --recursive $(SOURCES)

fuzz: ## fuzz the parsers of what strangers send: FUZZ=1 make fuzz
	@Scripts/fuzz

bench-setup: ## install the servers that the benchmark compares with
	@Benchmarks/setup

bench: ## build, measure, and write Benchmarks/results/latest.md
	@Scripts/build httpdnsd httpdns-simulator refresh-bench cache-bench
	@Benchmarks/run

install: ## copy program, units, man pages, completions, configuration; DESTDIR=, PREFIX=/usr/local, SYSCONFDIR=/etc
	@$(PLACES) Scripts/install

uninstall: ## remove what install has put there, with the same variables; the configuration stays
	@$(PLACES) Scripts/install --remove

bench-hostile: ## build, measure what a hostile client does to the others, write Benchmarks/results/hostile.md
	@Scripts/install-packages hostile
	@Scripts/build httpdnsd httpdns-simulator
	@Benchmarks/run-hostile --before Benchmarks/results/hostile-0.1.0.json

soak: ## load, faults, reloads, network changes and hostile clients for HOURS=N (or MINUTES=N), as root
	@Scripts/install-packages hostile
	@Scripts/build httpdnsd httpdns-simulator
	@Benchmarks/run-soak $(if $(MINUTES),--minutes $(MINUTES),--hours $(HOURS))

chaos: ## hostile providers, store, clients and reloads for SECONDS=N, under AddressSanitizer; SANITIZER=thread
	@Scripts/install-packages hostile
	@Scripts/chaos $(SECONDS) $(or $(SANITIZER),address)

compare: ## 18,802 answers beside those of a resolver behind the same provider
	@Scripts/install-packages compare
	@Scripts/build httpdnsd
	@/usr/bin/python3 Tests/System/compare

deb: ## build the Debian package into .build/deb; RELEASE=bookworm|trixie: from what is committed, for that release
	@$(if $(RELEASE),Scripts/deb-release '$(RELEASE)',Scripts/build && Scripts/deb)

clean: ## remove everything that was built
	rm -rf .build .build-asan .build-tsan
