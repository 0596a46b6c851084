# SPDX-License-Identifier: MIT
# Drives what each part is natively built with: Kbuild (kmod), CMake (all C++), meson in QEMU's own tree (device).
# The work is done by scripts/, which can be called alone.
.DEFAULT_GOAL := all
SHELL := /bin/bash
export ENPU_BUILD ?= $(CURDIR)/build
BUILD := $(ENPU_BUILD)
TEST_ARGS ?=

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  variables: IMAGE=FILE (run), QUICK=1 (bench), GDB=1, DEVICE='enpu,cores=4' (guest), TEST_ARGS='--name N --level L' (test-*),"
	@echo "             ENPU_CACHE (downloads), ENPU_BUILD (products), DESTDIR, PREFIX (install), ENPU_ACCEL=kvm|tcg (skips the trial boot)"

.PHONY: all setup cpp kmod device
all: cpp kmod device ## build everything (sets up first what is missing)

setup: ## get what is missing: Debian packages (root asked once), foreign packages, wheels, kernel
	@scripts/setup

cpp: setup ## all C++: model, libenpu, HAL, runtime, plug-ins, tools, tests
	@scripts/cpp

kmod: setup ## the kernel module, against the guest's kernel
	@scripts/kernel module

device: cpp ## QEMU with the device
	@scripts/qemu build

.PHONY: run test test-lint test-host test-device test-cuda test-guest test-asan test-tsan test-device-asan test-faults test-soak test-kernel-debug test-kernel-next test-frameworks test-models bench
run: setup ## read a picture's text on the NPU in the guest: make run [IMAGE=FILE]; or any model: make run MODEL=FILE INPUT='FILE…'; or PROMPT=TEXT
	@$(if $(PROMPT),scripts/wheels language && scripts/frameworks get)
	@scripts/cpp --target enpu-run $(if $(PROMPT),-DENPU_FRAMEWORKS=ON)
	@scripts/kernel module
	@scripts/qemu build
	@scripts/run $(if $(PROMPT),--prompt '$(PROMPT)',$(if $(MODEL),--model $(MODEL) $(INPUT),$(IMAGE)))

test: all ## every lane that fits in 40 minutes; results in build/results/
	@scripts/test $(TEST_ARGS)

test-lint: setup ## style, licences, generated files, kernel checks
	@scripts/test lint $(TEST_ARGS)

test-host: cpp ## C++ and script tests on the host
	@scripts/test host $(TEST_ARGS)

test-device: device ## qtests of the device
	@scripts/test device $(TEST_ARGS)

test-guest: all ## tests in the guest, on the driver
	@scripts/test guest $(TEST_ARGS)

test-cuda: ## conformance suite, runtime tests and benchmark on a CUDA GPU; installs nothing
	@scripts/test-cuda

test-asan: setup ## host tests under AddressSanitizer and UBSan (build/asan/)
	@ENPU_BUILD=$(BUILD)/asan scripts/cpp -DENPU_SANITIZE=address,undefined
	@ENPU_BUILD=$(BUILD)/asan scripts/test host $(TEST_ARGS)

test-tsan: setup ## host tests under ThreadSanitizer (build/tsan/)
	@ENPU_BUILD=$(BUILD)/tsan scripts/cpp -DENPU_SANITIZE=thread
	@ENPU_BUILD=$(BUILD)/tsan scripts/test host $(TEST_ARGS)

test-device-asan: all ## qtests and the guest lane on a QEMU whose device has AddressSanitizer and UBSan
	@scripts/fuzz qemu
	@scripts/test device-asan $(TEST_ARGS)

.PHONY: fuzz
fuzz: all ## all fuzzers, TIME seconds each (1800), then coverage by the corpus; results in build/results/fuzz.json
	@scripts/setup fuzz
	@scripts/fuzz all $(if $(TIME),--time $(TIME))

test-faults: all ## each fault under each workload, in the guest; results in build/results/faults.json
	@scripts/test faults $(TEST_ARGS)

test-soak: all ## 10,000 jobs of four processes under at least 500 faults; ENPU_SEED=N; results in build/results/soak.json
	@scripts/test soak $(TEST_ARGS)

test-kernel-debug: all ## guest tests, KUnit and kmemleak on the sanitizer kernel (built once, 17 minutes); results in build/results/kernel-debug/
	@ENPU_KERNEL=debug scripts/kernel module
	@ENPU_KERNEL=debug scripts/test guest $(TEST_ARGS)

test-kernel-next: all ## guest tests on Debian's newest kernel; results in build/results/kernel-next/
	@ENPU_KERNEL=next scripts/kernel module
	@ENPU_KERNEL=next scripts/test guest $(TEST_ARGS)

test-frameworks: setup ## the frameworks' own tests on our plug-ins (ggml, PyTorch); results in build/results/frameworks.json
	@scripts/frameworks get
	@scripts/frameworks pytorch get
	@scripts/cpp -DENPU_FRAMEWORKS=ON
	@integrations/ggml/ops_test.py $(BUILD)/lib/libenpu-ggml.so $(BUILD)/results/frameworks.json
	@scripts/wheels language
	@integrations/ggml/language_test.py $(BUILD)/lib/libenpu-ggml.so $(BUILD)/bin/enpu-ggml-nearest $(BUILD)/results/frameworks.json
	@ENPU_TORCH_LIBRARY=$(BUILD)/lib/libenpu-pytorch.so ENPU_DEVICE=$${ENPU_DEVICE:-sim} scripts/frameworks pytorch run python3 $(CURDIR)/integrations/pytorch/tests/device_test.py
	@integrations/pytorch/tests/opinfo_test.py $(BUILD)/lib/libenpu-pytorch.so $(BUILD)/results/frameworks.json
	@integrations/pytorch/tests/digits_test.py $(BUILD)/lib/libenpu-pytorch.so $(BUILD)/results/frameworks.json
	@ENPU_TORCH_LIBRARY=$(BUILD)/lib/libenpu-pytorch.so ENPU_DEVICE=$${ENPU_DEVICE:-sim} scripts/frameworks pytorch run python3 $(CURDIR)/integrations/pytorch/tests/distributed_test.py $(BUILD)/results/frameworks.json

test-models: cpp ## real ONNX models against the CPU provider, and what the provider offers beside operators; build/results/frameworks.json
	@scripts/models

bench: all ## measurements beside peers, one table; build/results/bench.json and plots/; QUICK=1 takes five minutes
	@QUICK=$(QUICK) scripts/bench

.PHONY: test-planted
test-planted: all ## plant each known mistake into the model or the module: the harness must find it; results in build/results/planted.json
	@scripts/planted

.PHONY: test-install
test-install: all package ## install the packages in a clean Debian root, use them in a guest, remove them; needs root, 1 GB in the cache
	@scripts/setup install
	@scripts/try-packages

.PHONY: test-two-guests
test-two-guests: setup ## one language model on the NPUs of two guests by ggml's RPC, and the death of one; results in build/results/frameworks.json
	@scripts/setup two-guests
	@scripts/wheels language
	@scripts/frameworks get
	@scripts/cpp --target enpu-run -DENPU_FRAMEWORKS=ON
	@scripts/kernel module
	@scripts/qemu build
	@integrations/ggml/two_guests_test.py $(BUILD)/results/frameworks.json

.PHONY: test-vfio
test-vfio: all ## the bring-up harness on the emulated device below any driver; results in build/results/bringup-vfio.json
	@scripts/bringup-vfio

.PHONY: test-browser
test-browser: cpp ## the page of a trace in headless Chromium (fetched to the cache, 130 MB)
	@scripts/chromium get >/dev/null
	@scripts/test host --name trace-page

.PHONY: install package
PREFIX ?= /usr/local
install: cpp ## install libraries, headers, tools and the module's sources under $(DESTDIR)$(PREFIX)
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX) >$(BUILD)/install.log || { tail -n 20 $(BUILD)/install.log; exit 1; }

package: cpp ## Debian packages and the Python wheel of the ONNX Runtime plug-in, in build/packages/
	@scripts/package

.PHONY: guest reload
guest: all ## a shell in the guest, device present, module ready to insmod; GDB=1 waits for gdb
	@scripts/guest shell $(if $(GDB),--gdb) $(foreach d,$(DEVICE),--device $(d))

reload: ## rebuild enpu.ko and exchange it in the running guest
	@scripts/guest reload

.PHONY: format lint clean clean-cache
format: ## format C++
	@git ls-files -z -- '*.cpp' '*.hpp' | xargs -0 -r clang-format -i

lint: test-lint ## the same as test-lint

clean: ## remove products (build/, the module's objects); the cache stays
	@rm -rf $(BUILD)
	@! [ -e kmod/Makefile ] || git clean -q -fdX kmod

clean-cache: ## remove downloads, QEMU tree, kernel, snapshots
	@scripts/clean-cache
