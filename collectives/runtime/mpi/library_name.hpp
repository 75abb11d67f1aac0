// Which MPI library runs, in few words.
#pragma once

#include <string>
#include <string_view>

namespace polyring {

/// "Open MPI 4.1.4" or "MPICH 4.0.2" of MPI_Get_library_version()'s text; of other libraries' texts what
/// stands before the first comma or line's end.
std::string library_name(std::string_view library_version);

}  // namespace polyring
