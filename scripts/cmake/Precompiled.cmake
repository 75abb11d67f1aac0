# Headers of libraries that most sources include, parsed once for each set of flags.
#
# polyring_precompile(NAME FOLDERS HEADERS…): an empty library NAME that parses them; all C++ programs and libraries of the
# folders and below use the result. A target with the property POLYRING_ALONE compiles without it, and so do
# sources with SKIP_PRECOMPILE_HEADERS, as those for other instruction sets.
option(POLYRING_PRECOMPILE "Parse the libraries' headers once" ON)

function(polyring_compiled_targets folder result)
  get_property(found DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(subfolder IN LISTS below)
    polyring_compiled_targets(${subfolder} more)
    list(APPEND found ${more})
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

function(polyring_precompile name folders)
  if(NOT POLYRING_PRECOMPILE)
    return()
  endif()
  foreach(folder IN LISTS folders)
    polyring_compiled_targets(${folder} more)
    list(APPEND targets ${more})
  endforeach()
  set(empty ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "")
  add_library(${name} OBJECT ${empty})
  target_link_libraries(${name} PRIVATE polyring_options)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(alone ${target} POLYRING_ALONE)
    if(type MATCHES "^(EXECUTABLE|(STATIC|OBJECT)_LIBRARY)$" AND NOT alone)
      target_precompile_headers(${target} REUSE_FROM ${name})
    endif()
  endforeach()
endfunction()
