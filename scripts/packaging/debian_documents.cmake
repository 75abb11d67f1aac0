# Run by CPack on the files before it packs them: what Debian's policy asks of documents. Chapter 12: man pages and the changelog are
# compressed, and the licence is the file copyright. Lintian reads why the package differs from what it expects.
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX})
set(documents ${root}/${CPACK_INSTALLED_DOCUMENTS})
file(REMOVE ${documents}/LICENSE)
string(TIMESTAMP year %Y UTC)
file(WRITE ${documents}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: polyring

Files: *
Copyright: ${year} Polyring's developers
License: Apache-2.0
 On Debian systems the whole text of the Apache License, Version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
")
file(STRINGS ${CPACK_LICENSE_FILE} licence REGEX "Apache License")
if(NOT licence)
  message(FATAL_ERROR "${CPACK_LICENSE_FILE} is no longer the Apache License: mend debian_documents.cmake")
endif()
string(TIMESTAMP today "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${documents}/changelog
"${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Built from the sources of version ${CPACK_PACKAGE_VERSION}.

 -- ${CPACK_PACKAGE_CONTACT}  ${today}
")
file(GLOB compressed ${root}/${CPACK_INSTALLED_MAN}/man1/*.1)
foreach(file IN LISTS compressed ITEMS ${documents}/changelog)
  execute_process(COMMAND gzip --best --no-name --force ${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(WRITE ${root}/share/lintian/overrides/${CPACK_PACKAGE_NAME}
"# One package holds the program, the libraries, and what other programs are built with.
${CPACK_PACKAGE_NAME}: package-name-doesnt-match-sonames *
${CPACK_PACKAGE_NAME}: link-to-shared-library-in-wrong-package *
# It is preloaded, and never linked.
${CPACK_PACKAGE_NAME}: shared-library-lacks-version *libpolyring_mpi.so*
")
