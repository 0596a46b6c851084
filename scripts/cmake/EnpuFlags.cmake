# SPDX-License-Identifier: MIT
# One set of compiler flags for all C and C++.
set(CMAKE_C_STANDARD 17)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_compile_options(-Wall -Wextra -Werror)
# What these say depends on how far a compiler inlines the standard library, and each version is wrong in other places: shown, not fatal.
foreach(_flow array-bounds stringop-overflow stringop-overread maybe-uninitialized)
  add_compile_options(-Wno-error=${_flow})
endforeach()

option(ENPU_FUZZ "libFuzzer targets (tests/fuzz) with address and undefined-behaviour sanitizers and coverage; needs clang" OFF)
if(ENPU_FUZZ)
  set(ENPU_SANITIZE address,undefined CACHE STRING "" FORCE)
  # clang warns of other things than the compiler that the project is written with.
  add_compile_options(-fsanitize=fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping -Wno-error)
  add_link_options(-fprofile-instr-generate)
endif()

set(ENPU_SANITIZE "" CACHE STRING "address,undefined or thread: build everything with these sanitizers")
if(ENPU_SANITIZE)
  add_compile_options(-fsanitize=${ENPU_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ENPU_SANITIZE})
  if(ENPU_FUZZ)
    # QEMU, a C program, loads the model without the runtime that this check needs.
    add_compile_options(-fno-sanitize=vptr)
  endif()
  # gcc's flow analysis reports false positives in instrumented library headers.
  add_compile_options(-Wno-maybe-uninitialized)
endif()
