# make run    sets up and runs the server with its page on an embedded store
# make test   sets up and runs every check that a change must pass
SHELL := /bin/sh
export CGO_ENABLED ?= 0

CACHE       := $(CURDIR)/.cache
STATICCHECK := $(CACHE)/bin/staticcheck-v0.8.2
SETUP       := internal/tools/setup.sh

# What tests use besides Go: command=Debian package.
GIT     := git=git
GCC     := gcc=gcc /usr/include/stdlib.h=libc6-dev
NODE    := node=nodejs npm=npm
BROWSER := chromium=chromium
TOOLS   := curl=curl
POSTGRES := pg_ctlcluster=postgresql
# The compiler alone lacks the types that every .proto file may import.
PROTOC  := protoc=protobuf-compiler /usr/include/google/protobuf/struct.proto=libprotobuf-dev

# Packages in which goroutines share data are tested under the race detector.
RACE := ./blob/... ./kv/... ./sqlite/... ./conversation/... ./workspace/... ./checkpoint/... ./kvstream/... ./cloudagent/... ./agentrun/... ./client/... ./access/... ./transfer/... ./postgres/... ./pack/...

.PHONY: all build run test test-long race bench servers lint generate clean

all: build

build:
	go build -trimpath -ldflags '-s -w' -o stet ./cmd/stet

run: build
	./stet --store $(CACHE)/run serve --demo

# The servers that tests start: Debian's Postgres and, built into the cache, another
# Postgres and an S3 server.
servers:
	$(SETUP) $(POSTGRES) $(NODE)
	internal/tools/postgres18.sh >/dev/null
	internal/tools/versitygw.sh >/dev/null

test: lint race
	$(SETUP) $(GIT) $(NODE) $(BROWSER) $(TOOLS)
	go test -timeout 20m ./...

race: servers
	$(SETUP) $(GIT) $(GCC)
	CGO_ENABLED=1 go test -race -timeout 20m $(RACE)

test-long: servers
	$(SETUP) $(GIT) $(GCC) $(NODE) $(BROWSER) $(TOOLS)
	STET_LONG=1 go test -timeout 12h ./...

bench: servers
	$(SETUP) $(GIT)
	go run ./internal/tools/bench

lint: $(STATICCHECK)
	$(SETUP) $(GIT) $(NODE) $(PROTOC)
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted"; exit 1; fi
	go vet ./...
	$(STATICCHECK) ./...
	internal/tools/generate.sh --check
	go test -run 'TestImportMap|TestPackageDocs' .

$(STATICCHECK):
	GOBIN=$(CACHE)/bin go install honnef.co/go/tools/cmd/staticcheck@v0.8.2
	mv $(CACHE)/bin/staticcheck $@

generate:
	$(SETUP) $(NODE) $(PROTOC)
	internal/tools/generate.sh

clean:
	rm -rf $(CACHE) stet
