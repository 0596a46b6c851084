# SPDX-License-Identifier: MIT
# enpu_test(NAME n (TARGET t | COMMAND cmd…) LEVEL l [HOST] [GUEST] [TIMEOUT s] [ARGS …] [ENV K=V …] [GUEST_ENV K=V …]
#           [GUEST_FILES f…] [DEVICES d…] [ALLOW_LOG r…] [MEMORY m] [LANE l] [NO_MODULE] [PLAIN])
#   NAME         unique, shown in results; the same NAME may be run on the host and in the guest
#   TARGET       a Catch2 v3 executable, linked by the caller with Catch2::Catch2WithMain (or its own main)
#   COMMAND      instead: a program or script that prints TAP on stdout (HOST only)
#   LEVEL        model | device | kernel | umd | hal | runtime | framework | e2e; the ctest label
#   HOST         a ctest entry that writes one JUnit (Catch2) or TAP (COMMAND) file to build/results/host/
#   GUEST        listed in build/guest/tests.json; scripts/guest stages it with its libraries and runs it in the guest
#   TIMEOUT      seconds, default 60; after it the test is killed and counts as failed
#   ENV          environment of the host run; GUEST_ENV of the guest run
#   GUEST_FILES  files or folders that the guest finds under $ENPU_TEST_FILES
#   DEVICES      -device arguments of its guest, one or more (default: one NPU with 2 cores); tests that agree share a guest
#   ALLOW_LOG    kernel messages that the test provokes, regular expressions; every other error of the driver fails it
#   MEMORY       of the guest, default 1G
#   LANE         the guest lane that runs it, if not 'guest': faults, soak, fuzz
#   NO_MODULE    enpu.ko is not loaded before the test (it lies at /enpu/enpu.ko)
#   PLAIN        TARGET is no Catch2 program: its TAP output or else its exit status counts (77 is skipped)
# Neither HOST nor GUEST given means HOST.
set(ENPU_TEST_LEVELS model device kernel umd hal runtime framework e2e)
enable_testing()

function(enpu_test)
  cmake_parse_arguments(T "HOST;GUEST;NO_MODULE;PLAIN"
                        "NAME;TARGET;LEVEL;TIMEOUT;MEMORY;LANE" "COMMAND;ARGS;ENV;GUEST_ENV;GUEST_FILES;DEVICES;ALLOW_LOG" ${ARGN})
  if(T_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "enpu_test(${T_NAME}): unknown argument ${T_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT T_NAME OR NOT T_LEVEL IN_LIST ENPU_TEST_LEVELS)
    message(FATAL_ERROR "enpu_test(${T_NAME}): NAME and a LEVEL of ${ENPU_TEST_LEVELS} are needed, LEVEL is '${T_LEVEL}'")
  endif()
  if((T_TARGET AND T_COMMAND) OR NOT (T_TARGET OR T_COMMAND))
    message(FATAL_ERROR "enpu_test(${T_NAME}): exactly one of TARGET and COMMAND is needed")
  endif()
  if(T_COMMAND AND T_GUEST)
    message(FATAL_ERROR "enpu_test(${T_NAME}): COMMAND runs on the host only")
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 60)
  endif()
  if(NOT T_LANE)
    set(T_LANE guest)
  endif()
  if(NOT T_MEMORY)
    set(T_MEMORY 1G)
  endif()
  if(T_HOST OR NOT T_GUEST)
    _enpu_host_test()
  endif()
  if(T_GUEST)
    _enpu_guest_test()
  endif()
endfunction()

macro(_enpu_host_test)
  set(_results ${CMAKE_BINARY_DIR}/results/host)
  set(_skipped 77)
  if(T_TARGET AND NOT T_PLAIN)
    set(_skipped 4)  # Catch2's, when all cases are skipped
  endif()
  set(_timeout ${T_TIMEOUT})
  if(ENPU_SANITIZE)
    math(EXPR _timeout "8 * ${T_TIMEOUT}")  # what ThreadSanitizer costs
  endif()
  file(MAKE_DIRECTORY ${_results})
  if(T_TARGET AND T_PLAIN)
    add_test(NAME ${T_NAME} COMMAND $<TARGET_FILE:${T_TARGET}> ${T_ARGS})
  elseif(T_TARGET)
    add_test(NAME ${T_NAME} COMMAND $<TARGET_FILE:${T_TARGET}> ${T_ARGS} --reporter console
             --reporter JUnit::out=${_results}/${T_NAME}.xml)
  else()
    add_test(NAME ${T_NAME} COMMAND ${CMAKE_SOURCE_DIR}/scripts/tap-run ${_results}/${T_NAME}.tap ${T_COMMAND} ${T_ARGS})
  endif()
  set_tests_properties(${T_NAME} PROPERTIES LABELS ${T_LEVEL} TIMEOUT ${_timeout} ENVIRONMENT "${T_ENV}"
                       SKIP_RETURN_CODE ${_skipped})
endmacro()

macro(_enpu_guest_test)
  _enpu_json_list(_args ${T_ARGS})
  _enpu_json_list(_env ${T_GUEST_ENV})
  _enpu_json_list(_files ${T_GUEST_FILES})
  _enpu_json_list(_devices ${T_DEVICES})
  _enpu_json_list(_allow ${T_ALLOW_LOG})
  set(_no_module false)
  if(T_NO_MODULE)
    set(_no_module true)
  endif()
  set(_plain false)
  if(T_PLAIN)
    set(_plain true)
  endif()
  set_property(GLOBAL APPEND PROPERTY ENPU_GUEST_TESTS "  {\"name\": \"${T_NAME}\", \"level\": \"${T_LEVEL}\", \
\"binary\": \"$<TARGET_FILE:${T_TARGET}>\", \"args\": [${_args}], \"env\": [${_env}], \"files\": [${_files}], \
\"timeout\": ${T_TIMEOUT}, \"devices\": [${_devices}], \"allow_log\": [${_allow}], \"memory\": \"${T_MEMORY}\", \
\"lane\": \"${T_LANE}\", \"no_module\": ${_no_module}, \"plain\": ${_plain}}")
endmacro()

function(_enpu_json_list out)
  set(_items ${ARGN})
  list(TRANSFORM _items REPLACE "([\\\"])" "\\\\\\1")
  list(TRANSFORM _items PREPEND "\"")
  list(TRANSFORM _items APPEND "\"")
  list(JOIN _items ", " _text)
  set(${out} "${_text}" PARENT_SCOPE)
endfunction()

# enpu_guest_program(t…): programs, plug-ins or libraries opened by name that the guest's share must hold besides tests.
function(enpu_guest_program)
  foreach(t ${ARGN})
    set_property(GLOBAL APPEND PROPERTY ENPU_GUEST_PROGRAMS "    \"$<TARGET_FILE:${t}>\"")
  endforeach()
endfunction()

# enpu_needed_by_run(t…): what 'make run' needs besides QEMU and the module; nothing else is compiled for it.
function(enpu_needed_by_run)
  if(NOT TARGET enpu-run)
    add_custom_target(enpu-run)
  endif()
  add_dependencies(enpu-run ${ARGN})
endfunction()

function(enpu_write_test_list)
  get_property(_tests GLOBAL PROPERTY ENPU_GUEST_TESTS)
  get_property(_programs GLOBAL PROPERTY ENPU_GUEST_PROGRAMS)
  list(JOIN _tests ",\n  " _tests)
  list(JOIN _programs ",\n" _programs)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/guest/tests.json
       CONTENT "{\n  \"tests\": [\n  ${_tests}\n  ],\n  \"programs\": [\n${_programs}\n  ]\n}\n")
endfunction()
