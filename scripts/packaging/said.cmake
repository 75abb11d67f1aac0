# Run at installation: writes completion for each shell and the man pages, as the program says them. The variables that name the
# program and the folders are set by what includes this.
set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
set(completions bash bash-completion/completions/polyring zsh ${zsh}/_polyring fish fish/vendor_completions.d/polyring.fish)
while(completions)
  list(POP_FRONT completions shell file)
  execute_process(COMMAND "${program}" completion ${shell} OUTPUT_VARIABLE script COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE "${prefix}/${data}/${file}" "${script}")
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${CMAKE_INSTALL_PREFIX}/${data}/${file}")
endwhile()

if(NOT python)
  message(STATUS "Man pages: skipped, CMake found no Python 3")
  return()
endif()
execute_process(COMMAND "${python}" -B "${man_pages}" "${program}" "${prefix}/${man}/man1" OUTPUT_VARIABLE pages
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" pages "${pages}")
list(TRANSFORM pages PREPEND "${CMAKE_INSTALL_PREFIX}/${man}/man1/")
list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${pages})
