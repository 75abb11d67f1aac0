# Builds the examples in this folder against an installed Polyring:
#
#     cmake -S . -B /tmp/examples && cmake --build /tmp/examples
cmake_minimum_required(VERSION 3.16)
project(polyring_examples LANGUAGES C CXX)
find_package(polyring 0.1 REQUIRED)
set(CMAKE_CXX_STANDARD 20)
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME)
  string(REPLACE "." "_" name ${name})  # allreduce_c
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE polyring::polyring)
endforeach()
