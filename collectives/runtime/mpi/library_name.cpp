#include "collectives/runtime/mpi/library_name.hpp"

#include <algorithm>

namespace polyring {

std::string library_name(std::string_view library_version) {
  const std::string_view line = library_version.substr(0, library_version.find_first_of(",\n"));
  const auto named = [&](std::string_view before, std::string_view name) {
    std::string_view number = line.substr(before.size());
    number.remove_prefix(std::min(number.find_first_not_of(" \t"), number.size()));
    return std::string(name) + std::string(number);
  };
  if (line.starts_with("Open MPI v")) return named("Open MPI v", "Open MPI ");
  if (line.starts_with("MPICH Version:")) return named("MPICH Version:", "MPICH ");
  return std::string(line);
}

}  // namespace polyring
