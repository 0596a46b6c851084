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
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  foreach(_flow array-bounds stringop-overflow stringop-overread maybe-uninitialized)
    add_compile_options(-Wno-error=${_flow})
  endforeach()
endif()

option(ENPU_FUZZ "libFuzzer targets (tests/fuzz) with address and undefined-behaviour sanitizers and coverage; needs clang" OFF)
if(ENPU_FUZZ)
  set(ENPU_SANITIZE address,undefined CACHE STRING "" FORCE)
  # clang warns of other things than the compiler that the project is written with.
  add_compile_options(-fsanitize=fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping -Wno-error)
  add_link_options(-fprofile-instr-generate)
endif()

set(ENPU_SANITIZE "" CACHE STRING "address,undefined or thread: build everything with these sanitizers")
# ENV of tests whose program has a library of ours loaded into it: the sanitizer's comes first, and the C++ library whose throw
# it wraps. ENPU_PYTHON_ENV is for Python; what that keeps to the end is no leak of ours.
set(ENPU_PRELOAD_ENV "")
set(ENPU_PYTHON_ENV "")
if(ENPU_SANITIZE)
  set(_runtime libasan.so)
  if(ENPU_SANITIZE MATCHES thread)
    set(_runtime libtsan.so)
    list(APPEND ENPU_PYTHON_ENV OPENBLAS_NUM_THREADS=1)  # NumPy's threads are not ours to check
  else()
    list(APPEND ENPU_PYTHON_ENV ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1)
  endif()
  foreach(_library ${_runtime} libstdc++.so.6)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${_library} OUTPUT_VARIABLE _path OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND _preload ${_path})
  endforeach()
  list(JOIN _preload ":" _preload)
  set(ENPU_PRELOAD_ENV LD_PRELOAD=${_preload})
  list(APPEND ENPU_PYTHON_ENV ${ENPU_PRELOAD_ENV})
endif()
if(ENPU_SANITIZE)
  add_compile_options(-fsanitize=${ENPU_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ENPU_SANITIZE})
  if(ENPU_FUZZ)
    # QEMU, a C program, loads the model without the runtime that this check needs.
    add_compile_options(-fno-sanitize=vptr)
  endif()
  # gcc's flow analysis reports false positives in instrumented library headers.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
