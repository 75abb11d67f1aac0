# Builds the examples in this folder against an installed Polyring:
#
#     cmake -S . -B /tmp/examples && cmake --build /tmp/examples
cmake_minimum_required(VERSION 3.16)
project(polyring_examples LANGUAGES C)
find_package(polyring 0.1 REQUIRED)
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE polyring::polyring)
endforeach()
