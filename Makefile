# make run    builds the server and serves it with its page on an embedded store
# make test   sets up and runs what every change must pass, in minutes
# make check  runs the rest: lint, generated files, full sizes, the race detector
# make test-agents  drives the coding agents themselves; downloads 1.5 GB once
# make release VERSION=v0.1.0  makes what is published; make test-release installs it
# make test-deploy  starts the units and the image, and renders the chart with helm
# make test-suites  runs the conformance suites of others in full, on every kind of store
# make stress  repeats all tests under load to find those that depend on luck; takes hours
# make cross  compiles for the other systems; make test-portable, test-windows and test-folding test what these use
SHELL := /bin/sh
export CGO_ENABLED ?= 0

CACHE       := $(CURDIR)/.cache
STATICCHECK := $(CACHE)/bin/staticcheck-v0.8.2
SETUP       := internal/tools/setup.sh

# What tests use besides Go; setup.sh knows where it comes from. The last three bring
# npm's modules.
PARTS := git curl node python browser postgres versitygw page typescript suites
# What only the full sizes use.
MORE  := postgres18 grpcurl frameworks
# The coding agents, at the versions that internal/tools/agents.sh names.
AGENTS := claude-code codex gemini opencode copilot qwen pi

# Packages in which goroutines share data are tested under the race detector, those that take
# longest first.
RACE := ./checkpoint/... ./sqlite/... ./postgres/... ./conversation/... ./blob/... ./agenttools/... ./kv/... ./upkeep/... ./workspace/... ./internal/swapdir/... ./internal/s3api/... ./internal/awsconfig/... ./kvstream/... ./cloudagent/... ./internal/lane/... ./document/... ./stream/... ./subscription/... ./server/streams/... ./thread/... ./agentrun/... ./client/... ./access/... ./transfer/... ./pack/...

# Packages that are tested under Wine, those that take longest first.
WINDOWS := ./checkpoint ./sqlite ./workspace ./conversation ./internal/osfile ./internal/supervise ./internal/swapdir ./keyring ./access ./pack

# Adapters for frameworks in Go are modules of their own, so that the library stays lean.
ADAPTERS := adapters/eino adapters/gocloud

# A compiler that collects garbage only when it is short of memory needs two thirds of the time.
LAZYGC := env GOGC=off GOMEMLIMIT=1GiB

# Compiles programs as releases are.
BUILD := internal/tools/build.sh

# The systems and processors that releases are made for, and how make cross checks them: the
# tests compile everything for Linux on amd64, where make lint vets it.
RELEASE_TARGETS := linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64,freebsd/amd64,freebsd/arm64
VET   := darwin/arm64,windows/amd64,freebsd/amd64
TYPES := linux/arm64,darwin/amd64,windows/arm64,freebsd/arm64

# Tests need no data for debuggers, and compiling without it takes three quarters of the time.
# What is large, written by others or generated, and seldom runs is not optimized for tests
# either, which takes half of the time. The tags are the program's. Every target that compiles
# for tests says so, or Go would compile twice.
SELDOM := github.com/stet-dev/stet/gen go.opentelemetry.io google.golang.org/grpc github.com/modelcontextprotocol github.com/google github.com/prometheus github.com/yuin github.com/alecthomas go.yaml.in github.com/spf13 golang.org/x/tools github.com/segmentio golang.org/x/text golang.org/x/net
test check full race stress lint cross test-portable test-windows test-long test-suites: export GOFLAGS := $(strip $(shell go env GOFLAGS) -tags=$(shell $(BUILD) --tags) -gcflags=all=-dwarf=false $(foreach p,$(SELDOM),'-gcflags=$p/...=-dwarf=false -N -l'))

# Code that only computes: SQLite, which is C translated into Go, compressors and parsers. The
# race detector would spend most of its time there and find nothing of ours, so only the Go
# code around it is instrumented. A package that uses sync.Map does not belong here: the
# linker keeps one copy of generic code, and in an uninstrumented one the detector misses
# that sync.Map synchronizes, and reports races that are none.
COMPUTES := github.com/ncruces/go-sqlite3-wasm/... github.com/klauspost/compress/... github.com/dlclark/regexp2/... github.com/alecthomas/chroma/... github.com/yuin/goldmark/... compress/flate
race stress: export GOFLAGS += $(foreach p,$(COMPUTES),'-gcflags=$p=-dwarf=false -race=false')

# The race detector and the portable code are tested on the disk.
test full stress: export TMPDIR = $(shell internal/tools/memory.sh)

# Frees the memory also after tests that fail or are interrupted.
TIDY := trap 'internal/tools/memory.sh --remove' EXIT; trap 'exit 130' INT TERM

# vet is part of lint. Without symbols for debuggers the test programs link in two thirds
# of the time.
GOTEST := go test -toolexec '$(LAZYGC)' -vet=off -ldflags '-s -w' -timeout 30m

# Compiles the packages and their tests, links nothing. The tests report what does not compile.
COMPILE := go list -toolexec '$(LAZYGC)' -e -test -export -deps -f '' ./... >/dev/null 2>&1

# Tests wait for disks and processes, so there are more at a time than there are cores. Those
# that take longest begin first, and the others fill in beside them.
MANY    := -p $$(($$(getconf _NPROCESSORS_ONLN) * 3))
LONGEST := ./internal/cli ./internal/scenario ./web/e2e ./internal/suites ./postgres ./sqlite ./server ./checkpoint ./fleet

.PHONY: all build run test check full race stress cross test-portable test-windows test-folding test-long test-agents test-suites release test-release image test-deploy bench bench-fleet growth lint generate clean

all: build

build:
	$(BUILD) -o ./ ./cmd/stet ./cmd/stet-hook

run: build
	./stet --store $(CACHE)/run serve --demo

# Setup mostly waits for downloads, so packages and tests are compiled beside it. The S3 server
# comes after that: half of the packages that it is compiled from are ours too. The last line
# names what this machine could not run. Properties are tried ten times here and under the
# race detector, elsewhere a hundred times.
test:
	@$(SETUP) $(filter-out versitygw,$(PARTS)) & $(COMPILE); $(LAZYGC) $(SETUP) versitygw && wait $$!
	@$(TIDY); code=0; RAPID_CHECKS=10 $(GOTEST) $(MANY) $(LONGEST) ./... || code=$$?; $(SETUP) --left-out $(PARTS); exit $$code

check: lint cross full test-portable race
	@$(SETUP) --left-out $(PARTS) $(MORE) compiler protoc

# Tests that have one size only were run by make test: Go knows their results.
full:
	$(SETUP) $(PARTS) $(MORE)
	$(TIDY); STET_FULL=1 $(GOTEST) $(MANY) $(LONGEST) ./... || exit 1; \
		for m in $(ADAPTERS); do (cd $$m && $(GOTEST) ./...) || exit 1; done

race:
	$(SETUP) $(PARTS) $(MORE) compiler
	if $(SETUP) --has compiler; then STET_FULL=1 RAPID_CHECKS=10 CGO_ENABLED=1 $(GOTEST) -race $(MANY) $(RACE); fi

# Repeats every package's tests under the race detector and under load; a second call resumes an
# interrupted one. For less: make stress ROUNDS=3 STRESS=./sqlite/...
ROUNDS ?= 20
STRESS ?= ./...
stress:
	$(SETUP) $(PARTS) compiler
	$(TIDY); RAPID_CHECKS=5 CGO_ENABLED=1 go run ./internal/tools/stress -rounds $(ROUNDS) $(STRESS)

# Checks that everything, tests included, compiles for all systems and processors, and vets
# it for one processor of each system. make release makes the programs.
cross:
	GOGC=300 go run ./internal/tools/othersystems -types $(TYPES) -vet $(VET) ./...

# Rewinds with the code that Windows has, which the tag portable brings to this system: kills
# and faults included.
test-portable:
	$(SETUP) git
	$(GOTEST) -tags portable ./internal/osfile ./internal/swapdir ./workspace ./checkpoint

# Runs the program and the packages that differ on Windows under Wine, which it brings; it
# needs root. Each call of a file is a conversation with Wine's server, so tests that do
# something at every call do it at fewer.
test-windows:
	internal/tools/wine.sh
	mkdir -p $(CACHE)/windows
	GOOS=windows $(BUILD) -toolexec '$(LAZYGC)' -o $(CACHE)/windows/ ./cmd/stet ./cmd/stet-hook
	STET_PROGRAM=$(CACHE)/windows/stet.exe STET_PROGRAM_WITH=$(CURDIR)/internal/tools/wine.sh STET_PROGRAM_SHELL="cmd /c" STET_PROGRAM_ROOT=Z: \
		internal/tools/wine.sh --during go test -vet=off -count=1 -v ./internal/smoke
	GOOS=windows go list -toolexec '$(LAZYGC)' -e -test -export -deps -f '' $(WINDOWS) >/dev/null
	GOOS=windows STET_SLOW_FILES=1 RAPID_CHECKS=10 internal/tools/wine.sh --during $(GOTEST) -count=1 -exec $(CURDIR)/internal/tools/wine.sh $(WINDOWS)

# Runs what depends on names on exFAT, where README and Readme are one; it needs root, FUSE
# and a loop device. Both back ends are tried.
FOLDING := TestRenamesOfCaseOnly|TestFailedRenamesOfCaseOnly|TestPathsAsTheyAreSpelled|TestNamesThatAreOne|TestWhatAFileSystemCannotHave|TestTraitsOfAFoldingFileSystem|TestProgram.*
test-folding:
	for tags in native portable; do mkdir -p $(CACHE)/folding/$$tags && \
		go build -trimpath -tags $$tags -o $(CACHE)/folding/$$tags/ ./cmd/stet ./cmd/stet-hook && \
		STET_PROGRAM=$(CACHE)/folding/$$tags/stet internal/tools/folding.sh $(GOTEST) -count=1 -v -tags $$tags -run '^($(FOLDING))$$' ./workspace ./checkpoint ./internal/smoke || exit 1; done

test-long:
	$(SETUP) $(PARTS) $(MORE) rclone
	STET_LONG=1 go test -timeout 12h ./...
	@$(SETUP) --left-out $(PARTS) $(MORE) rclone

# Makes everything that is published of a version in dist: make release VERSION=v0.1.0
# KEY=minisign.key. See docs/RELEASING.md.
release:
	@test -n '$(VERSION)' || { echo 'make release needs VERSION=v…'; exit 2; }
	$(SETUP) git nfpm
	nfpm=$$(internal/tools/nfpm.sh) && $(LAZYGC) go run ./internal/tools/release -version '$(VERSION)' -targets '$(RELEASE_TARGETS)' -nfpm "$$nfpm" -key '$(KEY)' -out dist

# Makes a release for this machine twice, compares the two, installs each artefact in a bare
# root and runs the demonstration from it.
test-release:
	$(SETUP) git node python nfpm rpm
	@code=0; STET_RELEASE=1 NFPM=$$(internal/tools/nfpm.sh) go test -vet=off -count=1 -timeout 1h -v ./internal/tools/release || code=$$?; \
		$(SETUP) --left-out git node python nfpm rpm; exit $$code

# Makes the image alone, without an engine: docker load or podman load take dist/*_image.tar.
image:
	go run ./internal/tools/release -version "v$$(cat VERSION)" -allow-changes -only image -targets linux/$$(go env GOARCH) -out dist

# Holds the deployment files to what reads them: helm and the types of Kubernetes, docker
# compose's own code, and a systemd that runs the units beside a database and a bucket, and
# the image from its layers. The last needs root.
test-deploy:
	$(SETUP) git postgres versitygw
	rm -rf $(CACHE)/deploy && mkdir -p $(CACHE)/deploy
	$(BUILD) -o $(CACHE)/deploy/stet ./cmd/stet
	go run ./internal/tools/release -version "v$$(cat VERSION)" -allow-changes -only image -targets linux/$$(go env GOARCH) -out $(CACHE)/deploy/image
	STET_UNITS=$(CACHE)/deploy/stet STET_UNITS_IMAGE=$$(echo $(CACHE)/deploy/image/*_image.tar) VERSITYGW=$$(internal/tools/versitygw.sh) \
		go test -vet=off -count=1 -timeout 30m -v ./deploy/units
	cd deploy/validate && $(GOTEST) -count=1 ./...
	@$(SETUP) --left-out git postgres versitygw

# Drives the agents that people run against a scripted model.
test-agents:
	$(SETUP) git node $(AGENTS)
	@code=0; STET_AGENTS=1 go test -vet=off -count=1 -timeout 2h -v ./internal/realagents || code=$$?; \
		$(SETUP) --left-out git node $(AGENTS); exit $$code

# Runs the suites that protocols and frameworks publish against the built server. Each prints
# what the suite says: passed, failed, skipped.
test-suites:
	$(SETUP) node python browser page suites frameworks postgres versitygw
	@code=0; STET_SUITES=1 go test -vet=off -count=1 -timeout 1h -v ./internal/suites/... || code=$$?; \
		for m in $(ADAPTERS); do (cd $$m && go test -vet=off -count=1 -v ./...) || code=$$?; done; \
		$(SETUP) --left-out node python browser page suites frameworks postgres versitygw; exit $$code

# The rivals are what others publish; one of them may have to be compiled.
bench:
	$(SETUP) $(PARTS) $(MORE) compiler rivals
	go run ./internal/tools/bench

# Fills a fleet on this machine with small conversations, and prints what they take and how long calls take. A million need
# 8 GB of disk and half an hour: make bench-fleet SIZES=1000,10000,100000,1000000
SIZES ?= 1000,10000,100000
bench-fleet:
	$(SETUP) postgres versitygw
	STET_FLEET_SIZES=$(SIZES) go test -vet=off -run '^$$' -bench BenchmarkScale -benchtime 1x -timeout 6h ./fleet

# Writes how costs grow with sizes into docs/PERFORMANCE.md; TIME is for all curves together.
TIME ?= 10m
growth:
	go run ./internal/tools/growth -time $(TIME)

lint: $(STATICCHECK)
	$(SETUP) git node typescript protoc
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted"; exit 1; fi
	for m in . $(ADAPTERS); do (cd $$m && go vet ./... && $(STATICCHECK) ./...) || exit 1; done
	if $(SETUP) --has typescript protoc; then internal/tools/generate.sh --check; fi

$(STATICCHECK):
	GOBIN=$(CACHE)/bin go install honnef.co/go/tools/cmd/staticcheck@v0.8.2
	mv $(CACHE)/bin/staticcheck $@

generate:
	$(SETUP) node typescript protoc
	internal/tools/generate.sh

clean:
	rm -rf $(CACHE) stet stet-hook
