# Two commands matter: `make demo` and `make test`. `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

cache := $(or $(CASTLE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/castle)
castle := $(cache)/bin/castle
# The engine's socket and command come by environment.
ready := eval "$$($(castle) setup --cache=$(cache))"

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  \1|\2/' | column -t -s '|'

# Where Go is missing, the program comes out of the module itself. The first time, Go says of hundreds of modules that it
# downloads them, which hides what else it may say.
.PHONY: castle
castle: ## Build the castle program into the cache folder
	@mkdir -p $(dir $(castle))
	@if command -v go >/dev/null; then \
		[ -x $(castle) ] || echo "building castle from its Go modules" >&2; \
		status=0; go build -o $(castle) ./ci/cmd/castle 2>$(cache)/castle.log || status=$$?; \
		grep -v '^go: downloading ' $(cache)/castle.log >&2 || true; exit $$status; \
	else dagger call program --platform="$$(uname -s | tr A-Z a-z)/$$(uname -m | sed 's/x86_64/amd64/;s/aarch64/arm64/')" export --path=$(castle); fi

.PHONY: setup
setup: castle ## Make a Dagger engine ready; print what a shell needs: eval "$(make -s setup)"
	@$(castle) setup --cache=$(cache)

.PHONY: setup-create
setup-create: castle ## The same, with the images that creating a cluster pulls
	@$(castle) setup --group=create --cache=$(cache)

.PHONY: demo
demo: castle ## Publish this repository's blog on this machine alone, create a cluster in the sandbox, publish into it
	@$(castle) demo up --cache=$(cache)

.PHONY: demo-down
demo-down: castle ## Stop and remove what `make demo` started
	@$(castle) demo down --cache=$(cache)

.PHONY: check
check: ## Vet, staticcheck and unit tests, which need nothing but Go and Git
	@scripts/check.sh

.PHONY: lint
lint: ## All of the lint that `make test` begins with, golangci-lint included
	@scripts/lint.sh

.PHONY: audit
audit: ## Known vulnerabilities that castle's own code reaches, by govulncheck: such a finding fails
	@scripts/audit.sh

.PHONY: test
test: castle ## All set-up and the tests, the end-to-end tests with the real engine included; ALL=1 with the slow ones
	@ALL=$(ALL) scripts/test.sh $(castle) $(cache)

.PHONY: test-sites
test-sites: castle ## Publish the sites of other people, warm and with a cold cache, and open their pages in a browser
	@scripts/test-sites.sh $(castle) $(cache)

.PHONY: bench
bench: castle ## The benchmarks of docs/benchmarks.md; an hour and a half on two cores
	@go build -o $(dir $(castle)) ./ci/cmd/castle-publish
	@$(ready); hugo=$$($(castle) tool hugo --cache=$(cache)); \
	go run ./ci/bench/publish -castle-publish=$(dir $(castle))castle-publish -hugo="$$hugo/hugo"
	@go run ./ci/bench/create -castle=$(castle) -cache=$(cache)
	@go test -run '^$$' -bench . -benchtime 3x ./ci/publish/gitops ./ci/publish/siteimage

# How often, and the seed of the first: the same seed strikes in the same way, at the same part of a run.
N ?= 200
SEED ?= 1
FOR ?= 6m

# FAULTS=random mixes faults N times, ten where that is not said, from SEED on; PAGE is where the table is written, besides being printed;
# STORIES names some.
mixes = $(if $(filter file,$(origin N)),10,$(N))
.PHONY: drill
drill: castle ## Play every story and print what was seen; PAGE=docs/reliability.md keeps it. FAULTS=random N=10 SEED=1 mixes faults
	@scripts/drill.sh $(castle) $(cache) $(if $(filter random,$(FAULTS)),random $(mixes) $(SEED),$(if $(PAGE),-write=$(PAGE)) $(if $(STORIES),-only=$(STORIES)))

.PHONY: mutants
mutants: ## Change the code of a package in small ways, in a copy, and list what its tests do not notice: PACKAGE=./ci/publish/imagepush
	@go run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash --workers=1 $(or $(PACKAGE),$(error PACKAGE names a package, such as ./ci/publish/imagepush))

.PHONY: interruptions
interruptions: castle ## Interrupt N=200 times create, and destroy or nuclear-wipe after it, at random instants; each time one more call has to end what was begun; ONLY=create or ONLY=out leaves the other in peace
	@scripts/interruptions.sh $(castle) $(cache) $(N) $(SEED) $(ONLY)

.PHONY: test-cosign
test-cosign: castle ## Have cosign itself verify what castle signs, and castle what cosign signs; cosign is built for that
	@folder=$$($(castle) tool cosign --cache=$(cache)) && CASTLE_COSIGN="$$folder/cosign" go test -count=1 -timeout 20m -v -run Cosign ./ci/publish/verify

.PHONY: test-s3
test-s3: castle ## Try the states in a real store that speaks S3 (versitygw), which is built for that
	@folder=$$($(castle) tool versitygw --cache=$(cache)) && PATH="$$($(castle) tool tofu --cache=$(cache)):$$PATH" \
	CASTLE_VERSITYGW="$$folder/versitygw" CASTLE_REQUIRE_ALL=1 go test -count=1 -timeout 20m -v ./ci/cluster/layers/state

# KUBERNETES=1 is for nodes with real kubelets, and for what they run.
.PHONY: setup-talos
setup-talos: castle ## Build what real Talos nodes are made of, once: ten minutes on two cores; with KUBERNETES=1 twice that; CREATE=1 adds what a create needs
	@scripts/setup-talos.sh $(castle) $(cache) $(if $(CREATE),create,$(if $(KUBERNETES),kubernetes))

.PHONY: check-longhorn
check-longhorn: castle ## Apply Longhorn's real chart, a folder CHART=, with castle's values to a real API server
	@CASTLE_REQUIRE_ALL=1 CASTLE=$(castle) CASTLE_CACHE=$(cache) LONGHORN_CHART=$(abspath $(CHART)) \
		go test -count=1 -tags longhornchart -run TestTheRealChartOfLonghornIsApplied -v ./ci/cluster/layers

.PHONY: drill-talos
drill-talos: castle ## What machines that run Talos do, on real nodes, by the tests that the simulator passes; KUBERNETES=1 brings a real Kubernetes up on them, CREATE=1 is a whole create; root and Linux
	@scripts/drill-talos.sh $(castle) $(cache) $(if $(CREATE),create,$(if $(KUBERNETES),kubernetes))

# One of ci/setup/gotool/versions.yaml, where it is built; else any that has an image.
HUGO ?= 0.148.1

.PHONY: test-hugo
test-hugo: castle ## Build sites with another version of Hugo than castle's, HUGO=0.148.1 or the oldest, 0.110.0, which is built where nothing can be pulled
	@variables=$$($(castle) setup --hugo=$(HUGO) --cache=$(cache)); eval "$$variables"; \
	CASTLE=$(castle) CASTLE_CACHE=$(cache) CASTLE_OTHER_HUGO=$(HUGO) CASTLE_E2E=1 \
	go test -count=1 -timeout 30m -v -run 'TestASiteIsBuiltWithTheHugoThatItNames|TestTheOldestHugo' ./ci/test/e2e ./ci/publish/site/sitesettle

.PHONY: publishers
publishers: ## Publish N=200 images at once into one GitOps repository; each has to get its commit
	@CASTLE_PUBLISHERS=$(N) go test -count=1 -timeout 2h -v -run TestPublishersAtOnceEachMakeTheirCommit ./ci/publish/gitops

.PHONY: fuzz
fuzz: ## Look for input that breaks what reads manifests, descriptions, castle.yaml and secrets, each for FOR=6m
	@scripts/fuzz.sh $(FOR)

.PHONY: bench-cold
bench-cold: castle ## A publish with a new engine, once compiling castle, once with its image, and where the time goes
	@$(ready); go run ./ci/bench/publish -only=cold -castle=$(castle) -cache=$(cache)

.PHONY: engine-down
engine-down: castle ## Stop an engine that castle started
	@$(castle) engine down --cache=$(cache) --mirror=never
