# Bare `make` prints the targets.
GO := .ci/go
BUILD := build
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man
FUZZTIME ?= 20s

RELEASE := 0.1.0
COMMIT := $(shell git rev-parse --short HEAD 2>/dev/null)
VERSION := $(RELEASE)$(if $(COMMIT),-g$(COMMIT))
GO_LDFLAGS := -X main.version=$(VERSION) -X main.libDir=$(LIBDIR)

.DEFAULT_GOAL := help
.PHONY: check docs test-repeat test-container help deps build kubernetes daemons relay core clock library demo test test-core test-long bench bench-against bench-go cost scaling bench-programs lint fuzz install uninstall clean

help:
	@echo 'make demo       two urdmads and Debian'"'"'s rping and perftest between them, as an ordinary user'
	@echo 'make check      the linter, and the tests that need no running urdmad, of what has changed: before each commit'
	@echo 'make test       every check there is, about 12 minutes on two quiet cores; make test-long: the long ones too, PART=n/m one of m parts'
	@echo 'make test-repeat  each end-to-end test 30 times, eight at once (REPEAT=n)'
	@echo 'make test-core  programs, tests of the C library and Open MPI on a urdmad that links no attached feature'
	@echo
	@echo 'make deps       install what is missing: Debian packages, Go 1.26'
	@echo 'make build      build/urdmad, build/urdma, build/liburdma.so, build/examples/*'
	@echo 'make kubernetes build/urdma-kubelet, the device plugin and DRA driver for Kubernetes'
	@echo 'make bench      urdma beside kernel sockets and DPDK, in one run (BENCH=--rounds=3 …: flags of build/urdma-bench)'
	@echo 'make bench-against  urdma beside urdma of another commit, REV=…, in one run (BENCH='"'"'--only memif'"'"')'
	@echo 'make cost       where the processor time of Writes goes, as tables (WIRE=udp: some wires); root, perf'
	@echo 'make scaling    how the cost of a message grows with connections and hosts, as the plots of docs/scaling.md'
	@echo 'make bench-go   Go benchmarks of the data path beside those of the commit before'
	@echo 'make lint       gofmt, vet, staticcheck, gcc -Wall -Wextra -Werror, and our own rules'
	@echo 'make fuzz       every fuzz target for FUZZTIME each ($(FUZZTIME))'
	@echo 'make install    into PREFIX ($(PREFIX)) below DESTDIR; make uninstall takes it out again'
	@echo 'make deb        build/urdma_*.deb, a Debian package; make test-package: as a service, in a fresh Debian; as root'
	@echo 'make release    build/release/: source and binary archives, Debian and RPM packages, images, SBOM, checksums, of what is committed; KEY=… signs it, with repositories for apt and dnf'
	@echo 'make docs       build/site/, a web site of docs/; make test-container: the container images, by podman, as root'
	@echo 'make clean      remove build/'

deps:
	@.ci/deps test

# The rules of the C parts, with paths from here.
include examples/examples.mk
-include verbs/lib/lib.mk

build: daemons library examples relay clock

daemons:
	@mkdir -p $(BUILD)
	$(GO) build -ldflags '$(GO_LDFLAGS)' -o $(BUILD)/ ./urdmad ./urdma

# A static program, so that it runs in any image.
kubernetes:
	@mkdir -p $(BUILD)
	CGO_ENABLED=0 $(GO) build -C kubernetes -ldflags '-s -w -X main.version=$(VERSION)' -o $(abspath $(BUILD))/urdma-kubelet .

# The lossy path of test/e2e and the benchmarks; it is not installed.
relay:
	@mkdir -p $(BUILD)
	$(GO) build -o $(BUILD)/ ./test/relay/udprelay

# urdmad without attached features, for tests; it is not installed.
core:
	@mkdir -p $(BUILD)
	$(GO) build -o $(BUILD)/ ./test/core/coreurdmad

# The clock that tests give to perftest; it is not installed.
clock: $(BUILD)/clock.so

$(BUILD)/clock.so: test/lab/clock/clock.c
	@mkdir -p $(BUILD)
	$(CC) -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -shared -fPIC -o $@ $<

library: $(BUILD)/liburdma.so $(BUILD)/liburdma.d $(BUILD)/liburdma.d/liburdma-malloc.so

# The targets below must work on a machine on which nothing is installed yet, so each first installs what it needs.
demo:
	@.ci/deps demo
	@$(MAKE) --no-print-directory build
	$(BUILD)/urdma run --hosts 2 -- rping -s -C 5 :: rping -c -a 198.18.0.1 -V -v -C 5
	$(BUILD)/urdma run --hosts 2 -- sh -c 'exec ib_write_lat -RF >/dev/null' :: ib_write_lat -RF 198.18.0.1
	$(BUILD)/urdma run --hosts 2 -- sh -c 'exec ib_write_bw -RF >/dev/null' :: ib_write_bw -RF 198.18.0.1
	@echo 'Next: $(BUILD)/urdma run -- PROGRAM, with any program that uses RDMA; make bench; README.md'

check:
	@.ci/check

test:
	@.ci/mounts
	@.ci/deps test
	@$(MAKE) --no-print-directory build
	@.ci/session .ci/test

# Tests on a urdmad that links no attached feature: Debian's programs and the C examples over five wires, the C
# programs of the library's tests and rdma-core's own suite, libfabric and UCX, Open MPI within a urdmad and between
# two. Tests with siw and rxe need a virtual machine and are not here: URDMA_LONG=1 and URDMA_DAEMON with ./test/vm.
ON_CORE = URDMA_BUILD=$(CURDIR)/$(BUILD) URDMA_DAEMON=$(CURDIR)/$(BUILD)/coreurdmad $(GO) test -count=1 -timeout 30m
test-core: build core
	@$(ON_CORE) ./test/e2e -run '^(TestPrograms|TestRoCE)$$/^(loopback|memif|udp|tcp|rocev2)$$'
	@$(ON_CORE) ./verbs/lib/test -run '^(TestObjects|TestSlots|TestReturnedMemory)$$'
	@$(ON_CORE) ./test/pyverbs ./test/programs
	@$(ON_CORE) ./test/mpi -run '^(TestWays|TestSpawn|TestEnd)$$'

test-long:
	@.ci/deps long
	@URDMA_LONG=1 $(MAKE) --no-print-directory test

# Shows whether an end-to-end test passes only by luck.
test-repeat: REPEAT ?= 30
test-repeat:
	@.ci/deps test
	@$(MAKE) --no-print-directory build
	@REPEAT=$(REPEAT) .ci/session .ci/test

bench: bench-programs
	@$(BUILD)/urdma-bench --build $(BUILD) --out $(BUILD)/bench $(BENCH)

REV ?= HEAD
bench-against: bench-programs
	@.ci/bench-against $(REV) $(BENCH)

# The tables of docs/design/cost.md; as root, for perf. WIRE selects some.
cost: bench-programs
	@bench/cost/cost.sh $(BUILD) '$(WIRE)'

# The plots of docs/scaling.md.
scaling:
	@mkdir -p $(BUILD)
	@{ $(GO) test ./urdmad/core/engine -run '^$$' -bench Pairs && \
		$(GO) test ./urdmad/core/reliable/reliabletest -count=1 -run 'TestIncast|TestAllToAll' -v; } >$(BUILD)/scaling.log
	@$(GO) run -C bench ./scaling $(CURDIR)/docs/benchmarks <$(BUILD)/scaling.log

# urdma-bench and the programs that it runs.
bench-programs:
	@.ci/deps bench
	@$(MAKE) --no-print-directory build
	@$(MAKE) --no-print-directory -C bench/bytes BUILD=$(abspath $(BUILD)) $(abspath $(BUILD))/bytes
	@$(MAKE) --no-print-directory -C bench/registration BUILD=$(abspath $(BUILD)) $(abspath $(BUILD))/registration
	@$(GO) build -C bench -o $(abspath $(BUILD))/urdma-bench .

# Compares Go's own benchmarks of the tree with those of the commit before.
bench-go:
	@.ci/bench-go

lint:
	@.ci/lint

fuzz:
	@.ci/fuzz $(FUZZTIME)

# The images of packaging/container, built and run by podman. If that is not possible, the script prints the reason
# and exits with 77.
test-container:
	-@.ci/deps container
	@test/container/podman.sh || [ $$? = 77 ]

# A web site of docs/, in build/site.
docs:
	@.ci/deps docs
	@.ci/docs $(BUILD)

include packaging/install.mk

clean:
	rm -rf $(BUILD)
