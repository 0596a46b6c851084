# SPDX-License-Identifier: MIT
# CMAKE_INSTALL_LIBDIR: Debian's folder of the architecture, which the linker knows under /usr and /usr/local.
include(GNUInstallDirs)
if(CMAKE_LIBRARY_ARCHITECTURE)
  set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE})
endif()
