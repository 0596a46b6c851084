# SPDX-License-Identifier: MIT
# What `cmake --install` puts where, in the components that scripts/package makes packages of. Libraries find each other by their own
# place, so that any prefix does; what only the simulator needs lies in a folder of its own.
set(_private ${CMAKE_INSTALL_LIBDIR}/enpu)
set_target_properties(enpu enpu-rt PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/enpu")
set_target_properties(enpu-model PROPERTIES INSTALL_RPATH "$ORIGIN")
set(_plugins enpu-hal-npu enpu-hal-cpu enpu-hal-null enpu-hal-cuda enpu-trace-preload)
if(TARGET enpu-ort-ep)
  list(APPEND _plugins enpu-ort-ep)
endif()
set_target_properties(${_plugins} PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/enpu;$ORIGIN/..")
set_target_properties(enpu-tool PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};$ORIGIN/../${_private}")

# enpu-sim: the functional model and oneDNN, which it computes with.
install(TARGETS enpu-model LIBRARY DESTINATION ${_private} COMPONENT sim)
if(TARGET enpu-imf)
  install(TARGETS enpu-imf enpu-intlc LIBRARY DESTINATION ${_private} COMPONENT sim NAMELINK_SKIP)
  # The link that the linker took; the file behind it has the name that programs ask for.
  install(FILES ${ENPU_WHEELS}/onednn/lib/libdnnl.so.3 DESTINATION ${_private} COMPONENT sim)
endif()

install(TARGETS enpu LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT lib NAMELINK_COMPONENT dev)
install(TARGETS enpu-rt LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev)
# The runtime looks for backends in its own folder.
install(TARGETS enpu-hal-npu enpu-hal-cpu enpu-hal-null enpu-hal-cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
if(TARGET enpu-ort-ep)
  install(TARGETS enpu-ort-ep LIBRARY DESTINATION ${_private} COMPONENT ort)
endif()

install(TARGETS enpu-tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
install(TARGETS enpu-trace-preload LIBRARY DESTINATION ${_private} COMPONENT tools)
install(CODE "execute_process(COMMAND ${CMAKE_SOURCE_DIR}/scripts/manual $<TARGET_FILE:enpu-tool> ${CMAKE_BINARY_DIR}/manual COMMAND_ERROR_IS_FATAL ANY)"
        COMPONENT tools)
install(DIRECTORY ${CMAKE_BINARY_DIR}/manual/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT tools)
install(FILES ${CMAKE_BINARY_DIR}/manual/enpu DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tools)

# Headers: one folder a layer, named by pkg-config and the CMake package.
set(_include ${CMAKE_INSTALL_INCLUDEDIR}/enpu-${PROJECT_VERSION})
install(DIRECTORY umd/include/enpu DESTINATION ${_include} COMPONENT dev FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES qemu-device/hw/include/enpu_hw.h qemu-device/hw/include/enpu_status.h qemu-device/hw/include/enpu_fault.h
        DESTINATION ${_include} COMPONENT dev)
install(DIRECTORY runtime/include/ hal/include/ DESTINATION ${_include} COMPONENT dev FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(DIRECTORY kmod/uapi/drm DESTINATION ${_include} COMPONENT dev)
# From the folder of pkg-config's files up to the prefix.
string(REGEX REPLACE "[^/]+" ".." PC_UP ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
foreach(_name enpu enpu-rt)
  set(PC_NAME ${_name})
  configure_file(scripts/cmake/package.pc.in ${CMAKE_BINARY_DIR}/install/${_name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/install/${_name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endforeach()
configure_file(scripts/cmake/enpuConfig.cmake.in ${CMAKE_BINARY_DIR}/install/enpuConfig.cmake @ONLY)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/install/enpuConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/install/enpuConfig.cmake ${CMAKE_BINARY_DIR}/install/enpuConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/enpu COMPONENT dev)

# The module's sources for DKMS, and the udev rule.
set(_source src/enpu-${PROJECT_VERSION})
install(DIRECTORY kmod DESTINATION ${_source} COMPONENT dkms
        FILES_MATCHING PATTERN "*.c" PATTERN "*.h" PATTERN Kbuild PATTERN Makefile
        PATTERN dump EXCLUDE PATTERN tests EXCLUDE PATTERN features EXCLUDE)
install(DIRECTORY kmod/features DESTINATION ${_source}/kmod COMPONENT dkms USE_SOURCE_PERMISSIONS)
install(DIRECTORY qemu-device/hw/include DESTINATION ${_source}/qemu-device/hw COMPONENT dkms)
configure_file(scripts/cmake/dkms.conf.in ${CMAKE_BINARY_DIR}/install/dkms.conf @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/install/dkms.conf DESTINATION ${_source} COMPONENT dkms)
install(FILES kmod/60-enpu.rules DESTINATION lib/udev/rules.d COMPONENT dkms)

# What builds QEMU with the device on the user's machine; never QEMU itself.
set(_qemu ${CMAKE_INSTALL_DATADIR}/enpu/qemu)
install(PROGRAMS scripts/qemu scripts/apt-root DESTINATION ${_qemu}/scripts COMPONENT qemu)
install(FILES scripts/lib.sh DESTINATION ${_qemu}/scripts COMPONENT qemu)
install(DIRECTORY scripts/qemu-overlay DESTINATION ${_qemu}/scripts COMPONENT qemu)
install(DIRECTORY qemu-device/qemu qemu-device/hw DESTINATION ${_qemu}/qemu-device COMPONENT qemu PATTERN rules EXCLUDE)
install(DIRECTORY qemu-device/model/include DESTINATION ${_qemu}/qemu-device/model COMPONENT qemu)
configure_file(scripts/cmake/enpu-build-qemu.in ${CMAKE_BINARY_DIR}/install/enpu-build-qemu @ONLY)
install(PROGRAMS ${CMAKE_BINARY_DIR}/install/enpu-build-qemu DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT qemu)
