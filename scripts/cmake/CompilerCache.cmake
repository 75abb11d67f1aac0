# Compiles through ccache where it is installed, unless CMAKE_CXX_COMPILER_LAUNCHER says otherwise. Builds with one MPI and the
# other differ in few sources, and checkouts of a commit only in the folder that they lie in: those share what is compiled.
if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER AND NOT DEFINED ENV{CMAKE_CXX_COMPILER_LAUNCHER})
  find_program(POLYRING_CCACHE ccache)
  mark_as_advanced(POLYRING_CCACHE)
  if(POLYRING_CCACHE)
    # The folder counts for nothing, and neither do __TIME__ and the times of files, which precompiled headers have in them.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${POLYRING_CCACHE})
  endif()
endif()
# It serves sources that begin with a precompiled header only with these.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options("SHELL:$<$<COMPILE_LANGUAGE:CXX>:-Xclang -fno-pch-timestamp>")
endif()
