# Makefile -- the commands of the project; `make help` lists them.

PREFIX     ?= /usr/local
SYSCONFDIR ?= /etc
DESTDIR    ?=
# `make run CONFIG=FILE`: that configuration, and no simulator.
CONFIG     ?=
# `make simulate SEEDS=N`: so many lives.
SEEDS      ?= 20
# `make soak HOURS=N`, or MINUTES=N.
HOURS      ?= 1
MINUTES    ?=

BINDIR   = $(PREFIX)/bin
UNITDIR  = $(PREFIX)/lib/systemd/system
DOCDIR   = $(PREFIX)/share/doc/httpdnsd
EXAMPLES = $(DOCDIR)/examples
SOURCES  = Package.swift Sources Tests Fuzz

.DEFAULT_GOAL := build
.PHONY: help run build test test-system simulate sanitize check format fuzz bench-setup bench bench-hostile soak compare install deb clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

run: build ## build, then run httpdnsd with the simulator on 127.0.0.1:5300; CONFIG=FILE: that configuration alone
	@# Whatever ends make, also a signal that it cannot pass on, ends the script.
	@exec setpriv --pdeathsig TERM Scripts/run $(if $(CONFIG),'$(CONFIG)')

build: ## install what is missing, build the release into .build/bin
	@Scripts/build

test: ## install what is missing, build and run every test; TESTS='--filter NAME' for some
	@Scripts/test $(TESTS)

test-system: ## boot a machine and try units, package and image there, as root; ONLY='NAME ...' for some
	@Scripts/test-system $(ONLY)

simulate: ## live through SEEDS=N simulated weeks with an outage an hour, each from a seed of its own
	@Scripts/simulate $(SEEDS)

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

install: ## copy program, units, configuration and documents; DESTDIR=, PREFIX=/usr/local, SYSCONFDIR=/etc
	@test -x .build/bin/httpdnsd || { echo "install: there is no .build/bin/httpdnsd; run 'make build' first" >&2; exit 1; }
	install -D -m 755 .build/bin/httpdnsd '$(DESTDIR)$(BINDIR)/httpdnsd'
	install -d '$(DESTDIR)$(UNITDIR)' '$(DESTDIR)$(SYSCONFDIR)/httpdnsd'
	sed -e 's|/usr/local/bin|$(BINDIR)|' -e 's|/etc/httpdnsd|$(SYSCONFDIR)/httpdnsd|' \
	  -e 's|/usr/local/share/doc/httpdnsd|$(DOCDIR)|' systemd/httpdnsd.service > '$(DESTDIR)$(UNITDIR)/httpdnsd.service'
	chmod 644 '$(DESTDIR)$(UNITDIR)/httpdnsd.service'
	install -m 644 systemd/httpdnsd.socket '$(DESTDIR)$(UNITDIR)/httpdnsd.socket'
	install -D -m 644 -t '$(DESTDIR)$(EXAMPLES)/grafana' Config/grafana/httpdnsd.json
	install -D -m 644 -t '$(DESTDIR)$(EXAMPLES)/prometheus' Config/prometheus/httpdnsd.rules.yml
	sed -e 's|/etc/httpdnsd|$(SYSCONFDIR)/httpdnsd|' systemd/credentials.conf.example \
	  > '$(DESTDIR)$(EXAMPLES)/credentials.conf.example'
	@# What it names by its place in the sources is elsewhere now.
	sed -e 's|systemd/credentials\.conf|$(EXAMPLES)/credentials.conf|g' \
	  -e 's|systemd/httpdnsd\.s|$(UNITDIR)/httpdnsd.s|g' -e 's#Config/\(grafana\|prometheus\)/#$(EXAMPLES)/\1/#g' \
	  -e 's|Config/httpdnsd\.toml|$(SYSCONFDIR)/httpdnsd/httpdnsd.toml|g' README.md > '$(DESTDIR)$(DOCDIR)/README.md'
	chmod 644 '$(DESTDIR)$(EXAMPLES)/credentials.conf.example' '$(DESTDIR)$(DOCDIR)/README.md'
	@# A configuration that is there is the administrator's.
	test -e '$(DESTDIR)$(SYSCONFDIR)/httpdnsd/httpdnsd.toml' || \
	  install -m 644 Config/httpdnsd.toml '$(DESTDIR)$(SYSCONFDIR)/httpdnsd/httpdnsd.toml'

bench-hostile: ## build, measure what a hostile client does to the others, write Benchmarks/results/hostile.md
	@Scripts/install-packages hostile
	@Scripts/build httpdnsd httpdns-simulator
	@Benchmarks/run-hostile --before Benchmarks/results/hostile-0.1.0.json

soak: ## load, faults, reloads, network changes and hostile clients for HOURS=N (or MINUTES=N), as root
	@Scripts/install-packages hostile
	@Scripts/build httpdnsd httpdns-simulator
	@Benchmarks/run-soak $(if $(MINUTES),--minutes $(MINUTES),--hours $(HOURS))

compare: ## 18,802 answers beside those of a resolver behind the same provider
	@Scripts/install-packages compare
	@Scripts/build httpdnsd
	@/usr/bin/python3 Tests/System/compare

deb: build ## build the Debian package into .build/deb
	@Scripts/deb

clean: ## remove everything that was built
	rm -rf .build .build-asan .build-tsan
