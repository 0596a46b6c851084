# SPDX-License-Identifier: MIT
# Where things lie: the cache with foreign packages (filled by scripts/setup) and the output folders.
#   ENPU_CACHE    the cache itself
#   ENPU_FOREIGN  root of unpacked Debian packages of other suites (ENPU_FOREIGN/usr/include, …)
#   ENPU_WHEELS   unpacked Python wheels, one folder a package name
#   ENPU_PYTHON   interpreter with NumPy and onnx, for test scripts
if(DEFINED ENV{ENPU_CACHE})
  set(_enpu_cache $ENV{ENPU_CACHE})
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(_enpu_cache $ENV{XDG_CACHE_HOME}/enpu)
else()
  set(_enpu_cache $ENV{HOME}/.cache/enpu)
endif()
set(ENPU_CACHE ${_enpu_cache} CACHE PATH "Downloads and foreign packages")
set(ENPU_FOREIGN ${ENPU_CACHE}/foreign)
set(ENPU_WHEELS ${ENPU_CACHE}/wheels)
set(ENPU_PYTHON ${ENPU_CACHE}/venv/bin/python3)

# The wheel's CMake config resolves from its own place; Debian's multiarch folders need the architecture.
list(PREPEND CMAKE_PREFIX_PATH ${ENPU_FOREIGN}/usr ${ENPU_WHEELS}/onednn)
list(PREPEND CMAKE_LIBRARY_PATH ${ENPU_FOREIGN}/usr/lib/x86_64-linux-gnu)
set(ENV{PKG_CONFIG_PATH} "${ENPU_FOREIGN}/usr/lib/x86_64-linux-gnu/pkgconfig:${ENPU_FOREIGN}/usr/share/pkgconfig:$ENV{PKG_CONFIG_PATH}")

# ONNX Runtime: the library from the wheel, the C headers from Debian (the API only grows, so an older header fits).
set(ENPU_ORT_INCLUDE ${ENPU_FOREIGN}/usr/include/onnxruntime)
set(ENPU_GGML_ROOT ${ENPU_CACHE}/frameworks)
set(ENPU_PYTORCH_ROOT ${ENPU_CACHE}/frameworks-pytorch)
set(ENPU_ORT_LIB_DIR ${ENPU_WHEELS}/onnxruntime/onnxruntime/capi)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
