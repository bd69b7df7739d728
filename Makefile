# make run    sets up and runs the server with its page on an embedded store
# make test   sets up and runs every check that a change must pass
SHELL := /bin/sh
export CGO_ENABLED ?= 0

CACHE       := $(CURDIR)/.cache
STATICCHECK := $(CACHE)/bin/staticcheck-v0.8.2
SETUP       := internal/tools/setup.sh

# Packages in which goroutines share data are tested under the race detector.
RACE := ./blob/... ./kv/... ./sqlite/... ./conversation/... ./workspace/... ./checkpoint/... ./kvstream/... ./cloudagent/... ./agentrun/... ./server/... ./client/...

.PHONY: all build run test test-long race bench lint generate clean

all: build

build:
	go build -trimpath -ldflags '-s -w' -o stet ./cmd/stet

run: build
	@test -d $(CACHE)/demo || ./stet --quiet --store $(CACHE)/run demo $(CACHE)/demo >/dev/null
	./stet --store $(CACHE)/run serve

test: lint race
	go test -timeout 20m ./...

race:
	$(SETUP) git=git gcc=gcc /usr/include/stdlib.h=libc6-dev
	CGO_ENABLED=1 go test -race -timeout 20m $(RACE)

test-long:
	$(SETUP) git=git gcc=gcc /usr/include/stdlib.h=libc6-dev
	STET_LONG=1 go test -timeout 12h ./...

bench:
	$(SETUP) git=git
	go run ./internal/tools/bench

lint: $(STATICCHECK)
	$(SETUP) git=git protoc=protobuf-compiler
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted"; exit 1; fi
	go vet ./...
	$(STATICCHECK) ./...
	internal/tools/generate.sh --check
	go test -run 'TestImportMap|TestPackageDocs' .

$(STATICCHECK):
	GOBIN=$(CACHE)/bin go install honnef.co/go/tools/cmd/staticcheck@v0.8.2
	mv $(CACHE)/bin/staticcheck $@

generate:
	$(SETUP) protoc=protobuf-compiler
	internal/tools/generate.sh

clean:
	rm -rf $(CACHE) stet
