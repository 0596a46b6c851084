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

set(ENPU_SANITIZE "" CACHE STRING "address,undefined or thread: build everything with these sanitizers")
if(ENPU_SANITIZE)
  add_compile_options(-fsanitize=${ENPU_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ENPU_SANITIZE})
  # gcc's flow analysis reports false positives in instrumented library headers.
  add_compile_options(-Wno-maybe-uninitialized)
endif()
