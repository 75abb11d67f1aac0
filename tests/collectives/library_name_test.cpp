#include "collectives/runtime/mpi/library_name.hpp"

#include <gtest/gtest.h>

namespace polyring {
namespace {

TEST(LibraryName, IsTheNameAndTheVersion) {
  EXPECT_EQ(
      library_name("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022"),
      "Open MPI 4.1.4");
  EXPECT_EQ(library_name("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022\n"),
            "MPICH 4.0.2");
  EXPECT_EQ(library_name("MPICH Version:      4.3.0\nMPICH Release date: …"), "MPICH 4.3.0");
}

TEST(LibraryName, IsTheFirstWordsOfOtherLibraries) {
  EXPECT_EQ(library_name("Another MPI 2.0 for Linux\nmore"), "Another MPI 2.0 for Linux");
  EXPECT_EQ(library_name("MPICH Version:"), "MPICH ");
  EXPECT_EQ(library_name(""), "");
}

}  // namespace
}  // namespace polyring
