# polyring_mpi_test(NAME TARGET RANKS… [ONCE RANKS…] [ARGUMENTS…]): for each rank count N a CTest NAME.N that runs the program
# TARGET under `mpiexec -n N`. The tests carry the label `mpi`, so that they run with either MPI, and under ASan; those of ONCE
# run in the release build alone. The target `polyring_mpi_tests` builds them.

set(POLYRING_MPI_TIMEOUT 300 CACHE STRING "Seconds after which a test under mpiexec has failed")

# Leave to start as root and with more ranks than cores, as in the scripts.
file(STRINGS ${PROJECT_SOURCE_DIR}/scripts/mpi.env POLYRING_MPI_ENVIRONMENT REGEX "^[A-Z]")
# A user's choices would be another plan than the tests expect.
list(APPEND POLYRING_MPI_ENVIRONMENT POLYRING_TUNED=none)
# Tests run beside each other: ranks that are pinned to the first cores, or that never yield, would starve.
list(APPEND POLYRING_MPI_ENVIRONMENT
     OMPI_MCA_hwloc_base_binding_policy=none
     PRTE_MCA_hwloc_default_binding_policy=none
     OMPI_MCA_mpi_yield_when_idle=1)

# polyring_mpi_environment(TEST [LEAKS] [NAME=VALUE…]): what a CTest that initialises MPI needs, and what it is told beside that.
# With LEAKS, memory that leaks is a failure under ASan.
function(polyring_mpi_environment test)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "LEAKS" "" "")
  # Jobs of Open MPI 4 would share one folder in /tmp: the end of one may remove it when another has just found it
  # (open-mpi/ompi#8510).
  set(sessions ${PROJECT_BINARY_DIR}/Testing/sessions/${test})
  file(MAKE_DIRECTORY ${sessions})
  set_property(TEST ${test} PROPERTY ENVIRONMENT ${POLYRING_MPI_ENVIRONMENT} OMPI_MCA_orte_tmpdir_base=${sessions}
                                                 ${ARG_UNPARSED_ARGUMENTS})
  if(POLYRING_SANITIZE MATCHES "address")
    # Only the slow unwinder passes through Open MPI's frames, by which tests/sanitizers/lsan.supp knows its leaks. It makes a
    # command three times slower.
    set(leaks detect_leaks=0)
    if(ARG_LEAKS)
      set(leaks fast_unwind_on_malloc=0)
    endif()
    set_property(TEST ${test} PROPERTY ENVIRONMENT_MODIFICATION ASAN_OPTIONS=string_append::${leaks})
  endif()
endfunction()

add_custom_target(polyring_mpi_tests)

function(polyring_mpi_test name target)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "" "ONCE;ARGUMENTS")
  add_dependencies(polyring_tests ${target})
  add_dependencies(polyring_mpi_tests ${target})
  foreach(ranks IN LISTS ARG_UNPARSED_ARGUMENTS ARG_ONCE)
    add_test(NAME ${name}.${ranks}
             COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:${target}> ${ARG_ARGUMENTS})
    set_tests_properties(${name}.${ranks} PROPERTIES
                         LABELS mpi PROCESSORS ${ranks} TIMEOUT ${POLYRING_MPI_TIMEOUT})
    if(ranks IN_LIST ARG_ONCE)
      set_property(TEST ${name}.${ranks} APPEND PROPERTY LABELS once)
    endif()
    polyring_mpi_environment(${name}.${ranks} LEAKS)
  endforeach()
endfunction()
