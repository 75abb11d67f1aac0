# What CPack makes the Debian package of; scripts/packaging/deb configures, builds and packs it.
set(POLYRING_MAINTAINER "Polyring's developers <polyring@localhost>" CACHE STRING "Name and address of who makes the Debian package")
mark_as_advanced(POLYRING_MAINTAINER)
set(mpi_program openmpi-bin)
if("${MPI_CXX_LIBRARIES}" MATCHES "mpich")
  set(mpi_program mpich)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_NAME polyring)
set(CPACK_PACKAGE_CONTACT "${POLYRING_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "measures how well GPU clusters scale")
set(CPACK_PACKAGE_DESCRIPTION
"Polyring detects a machine's topology, measures allreduces of many
algorithms side by side, verified, judges clusters, and predicts speedup
and scaling efficiency from the topology. The package also has its library
of collectives for C and C++, libpolyring, with header and pkg-config file.")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# In the place of scripts that call ldconfig; scripts/packaging/deb removes those that CPack adds.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
# Which package programs depend on that are linked with its libraries; libpolyring_mpi is not linked, but preloaded.
foreach(library polyring_c polyring_ddl)
  get_target_property(name ${library} OUTPUT_NAME)
  get_target_property(soversion ${library} SOVERSION)
  string(APPEND shlibs "lib${name} ${soversion} polyring (>= ${PROJECT_VERSION})\n")
endforeach()
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/shlibs "${shlibs}")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_BINARY_DIR}/triggers ${CMAKE_CURRENT_BINARY_DIR}/shlibs)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "${mpi_program}, libhwloc-plugins, python3:any")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-matplotlib, python3-jinja2, openssh-client")
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/debian_documents.cmake)
set(CPACK_INSTALLED_DOCUMENTS ${CMAKE_INSTALL_DOCDIR})
set(CPACK_INSTALLED_MAN ${CMAKE_INSTALL_MANDIR})
set(CPACK_LICENSE_FILE ${PROJECT_SOURCE_DIR}/LICENSE)
include(CPack)
