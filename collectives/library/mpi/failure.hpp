// Failures of ours as MPI's.
#pragma once

#include <mpi.h>

#include <string>
#include <string_view>

namespace polyring::interposer {

/// A code of a class of ours, whose MPI_Error_string() is the sentence, or as much of it as MPI holds;
/// each sentence has one. MPI_ERR_OTHER where MPI gives none.
int error_code_of(const std::string& sentence);

/// On stderr, after "polyring: ". Takes no memory, and does nothing where stderr is closed.
void say(std::string_view sentence, std::string_view more = {}) noexcept;

/// Has the communicator's error handler decide. Returns the code, if it returns.
int raise_error(MPI_Comm comm, int code);

}  // namespace polyring::interposer
