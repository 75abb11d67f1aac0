# Finds a CUDA toolkit from 12.0 on, by which the plug-in is compiled, wherever it lies: CUDAToolkit_ROOT, CUDACXX, CUDA_HOME,
# CUDA_PATH, PATH, a conda environment, /usr/local/cuda, or PyPI's packages of the Python that CMake finds. No GPU is needed.
#
# Sets POLYRING_CUDA (whether there is one), POLYRING_CUDA_VERSION, POLYRING_CUDA_MAJOR, POLYRING_CUDART (the shared library) and
# POLYRING_NCCL_INCLUDE (where nccl.h lies, or nothing), and makes the target polyring_cuda_headers. Where there is none, says so.
#
# polyring_cuda_objects(RESULT SOURCES…): compiles .cu files for POLYRING_CUDA_ARCHITECTURES; RESULT lists the objects.

option(POLYRING_WITH_CUDA "Compile the CUDA plug-in where a toolkit is found" ON)
set(POLYRING_CUDA_ARCHITECTURES "$ENV{POLYRING_CUDA_ARCHITECTURES}" CACHE STRING
    "Compute capabilities to compile for, oldest first, e.g. 75;90; others run by the PTX of the first. Empty: all generations")
set(POLYRING_CUDA OFF)

# Skips something that GPUs need, and says why; fails where POLYRING_MUST_RUN names gpu. scripts/build finds in POLYRING_GPU_SKIPPED
# what was skipped.
set(POLYRING_GPU_SKIPPED "" CACHE INTERNAL "What GPUs need that this build lacks")
function(polyring_skip_gpu what why lost)
  set(POLYRING_GPU_SKIPPED "${what}: ${why}" CACHE INTERNAL "What GPUs need that this build lacks")
  if("$ENV{POLYRING_MUST_RUN}" MATCHES "(^| )gpu( |$)")
    message(FATAL_ERROR "POLYRING_MUST_RUN names gpu, so that ${what} may not be skipped: ${why}")
  endif()
  message(STATUS "${what}: skipped, ${why}; ${lost} will not be available")
endfunction()

function(polyring_find_cuda)
  if(NOT POLYRING_WITH_CUDA)
    polyring_skip_gpu(CUDA "POLYRING_WITH_CUDA is off" GPUs)
    return()
  endif()
  find_package(Python3 QUIET COMPONENTS Interpreter)
  file(GLOB packages "${Python3_SITELIB}/nvidia/cu1[2-9]" "${Python3_SITELIB}/nvidia/cuda_nvcc")
  set(roots ${CUDAToolkit_ROOT} $ENV{CUDAToolkit_ROOT} $ENV{CUDA_HOME} $ENV{CUDA_PATH})
  get_filename_component(named "$ENV{CUDACXX}" DIRECTORY)
  find_program(POLYRING_NVCC nvcc HINTS ${roots} ${named} $ENV{CONDA_PREFIX} PATHS /usr/local/cuda ${packages} PATH_SUFFIXES bin)
  mark_as_advanced(POLYRING_NVCC)
  if(NOT POLYRING_NVCC)
    polyring_skip_gpu(CUDA "no nvcc found" GPUs)
    return()
  endif()
  execute_process(COMMAND ${POLYRING_NVCC} --version OUTPUT_VARIABLE said ERROR_QUIET)
  if(NOT said MATCHES "release ([0-9]+)\\.([0-9]+)")
    polyring_skip_gpu(CUDA "${POLYRING_NVCC} --version does not say its release" GPUs)
    return()
  endif()
  set(major ${CMAKE_MATCH_1})
  set(version ${CMAKE_MATCH_1}.${CMAKE_MATCH_2})
  if(major LESS 12)
    polyring_skip_gpu(CUDA "${POLYRING_NVCC} is of release ${version} and 12.0 is needed" GPUs)
    return()
  endif()
  # In PyPI's packages for CUDA 12 the compiler, the headers and the library lie in a folder each.
  get_filename_component(real ${POLYRING_NVCC} REALPATH)
  get_filename_component(root ${real}/../.. ABSOLUTE)
  file(GLOB beside "${root}/../cuda_runtime" "${root}/../cuda_cccl")
  find_path(POLYRING_CUDA_INCLUDE cuda_runtime_api.h HINTS ${root} ${beside} PATH_SUFFIXES include targets/x86_64-linux/include
                                                                             targets/sbsa-linux/include NO_DEFAULT_PATH)
  find_file(POLYRING_CUDART NAMES libcudart.so.${major} libcudart.so HINTS ${root} ${beside}
            PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib targets/sbsa-linux/lib lib/x86_64-linux-gnu NO_DEFAULT_PATH)
  find_path(POLYRING_NCCL_INCLUDE nccl.h HINTS ${root} ${root}/../nccl $ENV{NCCL_HOME} $ENV{CONDA_PREFIX} PATH_SUFFIXES include)
  mark_as_advanced(POLYRING_CUDA_INCLUDE POLYRING_CUDART POLYRING_NCCL_INCLUDE)
  if(NOT POLYRING_CUDA_INCLUDE OR NOT POLYRING_CUDART)
    polyring_skip_gpu(CUDA "there is no cuda_runtime_api.h or no libcudart.so.${major} beside ${POLYRING_NVCC}" GPUs)
    return()
  endif()
  message(STATUS "CUDA: ${version}, ${POLYRING_NVCC}")
  if(POLYRING_NCCL_INCLUDE)
    message(STATUS "NCCL: its header found in ${POLYRING_NCCL_INCLUDE}")
  else()
    polyring_skip_gpu(NCCL "no nccl.h found" NCCL)
  endif()
  set(POLYRING_CUDA ON PARENT_SCOPE)
  set(POLYRING_CUDA_VERSION ${version} PARENT_SCOPE)
  set(POLYRING_CUDA_MAJOR ${major} PARENT_SCOPE)
endfunction()

polyring_find_cuda()
if(POLYRING_CUDA)
  add_library(polyring_cuda_headers INTERFACE)
  target_include_directories(polyring_cuda_headers SYSTEM INTERFACE ${POLYRING_CUDA_INCLUDE})
  # CUDA 13 has the C++ headers in a folder of their own.
  foreach(folder IN ITEMS ${POLYRING_CUDA_INCLUDE}/cccl ${POLYRING_CUDA_INCLUDE}/../../cuda_cccl/include)
    if(EXISTS ${folder}/cuda/atomic)
      target_include_directories(polyring_cuda_headers SYSTEM INTERFACE ${folder})
    endif()
  endforeach()

  # A GPU runs code for its own generation up to its own number, or compiles the PTX when the plug-in is loaded. One PTX for all
  # takes the compiler a third of the time of one for each.
  if(POLYRING_CUDA_ARCHITECTURES)
    set(polyring_architectures ${POLYRING_CUDA_ARCHITECTURES})
  elseif(POLYRING_CUDA_MAJOR EQUAL 12)
    set(polyring_architectures 60 70 75 80 86 89 90)
  else()
    set(polyring_architectures 75 80 86 89 90 100 120)
  endif()
  # GPUs before 7.0 schedule their threads in another way, and need PTX of their own.
  set(polyring_old ${polyring_architectures})
  list(FILTER polyring_old INCLUDE REGEX "^[1-6][0-9]$")
  set(polyring_new ${polyring_architectures})
  list(FILTER polyring_new EXCLUDE REGEX "^[1-6][0-9]$")
  set(polyring_nvcc_options)
  foreach(generations IN ITEMS polyring_old polyring_new)
    if(${generations})
      list(GET ${generations} 0 oldest)
      list(TRANSFORM ${generations} PREPEND sm_ OUTPUT_VARIABLE codes)
      list(JOIN codes "," codes)
      list(APPEND polyring_nvcc_options "-gencode=arch=compute_${oldest},code=[compute_${oldest},${codes}]")
    endif()
  endforeach()
  # The results have the host's bits: nothing may be contracted to a fused multiply-add. What compiles the host's part need not be
  # the project's compiler: a toolkit knows no clang that is newer than itself.
  list(APPEND polyring_nvcc_options -std=c++20 -O3 -cudart=shared -fmad=false --no-compress --expt-relaxed-constexpr
       -Xcompiler=-fPIC,-fno-gnu-unique -I${PROJECT_SOURCE_DIR} -I${POLYRING_CUDA_INCLUDE})
  if(POLYRING_WERROR)
    list(APPEND polyring_nvcc_options -Werror=all-warnings -Werror=cross-execution-space-call)
  endif()
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    find_program(POLYRING_CUDA_HOST_COMPILER g++)
    mark_as_advanced(POLYRING_CUDA_HOST_COMPILER)
  endif()
  if(POLYRING_CUDA_HOST_COMPILER)
    list(APPEND polyring_nvcc_options -ccbin=${POLYRING_CUDA_HOST_COMPILER})
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND polyring_nvcc_options -ccbin=${CMAKE_CXX_COMPILER})
  endif()

  function(polyring_cuda_objects result)
    set(objects)
    foreach(source IN LISTS ARGN)
      get_filename_component(source ${source} ABSOLUTE)
      get_filename_component(name ${source} NAME)
      set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
      add_custom_command(
        OUTPUT ${object}
        COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${POLYRING_NVCC} ${polyring_nvcc_options} -MD -MF ${object}.d -c ${source} -o ${object}
        DEPENDS ${source}
        DEPFILE ${object}.d
        COMMENT "Compiling ${name} for compute capabilities ${polyring_architectures}"
        VERBATIM)
      list(APPEND objects ${object})
    endforeach()
    set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    set(${result} ${objects} PARENT_SCOPE)
  endfunction()
endif()
