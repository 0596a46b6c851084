// SPDX-License-Identifier: MIT
// The double of the CUDA driver, for tests.
#pragma once

#include <dlfcn.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

#include "../double/control.h"

namespace enpu::hal::cuda {

// The control functions of the double that the backend has loaded.
struct Double {
    decltype(&enpu_cuda_double_live) live;
    decltype(&enpu_cuda_double_calls) calls;
    decltype(&enpu_cuda_double_fail) fail;
    decltype(&enpu_cuda_double_break) break_next;
    decltype(&enpu_cuda_double_hang) hang;
    decltype(&enpu_cuda_double_delay_us) delay_us;

    Double() {
        const char* path = std::getenv("ENPU_CUDA_LIBRARY");
        REQUIRE(path);
        void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        REQUIRE(library);
        find(library, "enpu_cuda_double_live", live);
        find(library, "enpu_cuda_double_calls", calls);
        find(library, "enpu_cuda_double_fail", fail);
        find(library, "enpu_cuda_double_break", break_next);
        find(library, "enpu_cuda_double_hang", hang);
        find(library, "enpu_cuda_double_delay_us", delay_us);
    }
    ~Double() {
        hang(0);
        delay_us(0);
    }
    enpu_cuda_double_objects objects() const {
        enpu_cuda_double_objects now{};
        live(&now);
        return now;
    }

  private:
    template <typename F>
    void find(void* library, const char* name, F& function) {
        function = reinterpret_cast<F>(dlsym(library, name));
        REQUIRE(function);
    }
};

}  // namespace enpu::hal::cuda
