// What is said to the process manager where the MPI library cannot: since it may not come back from
// MPI_Finalize, or hangs already.
#pragma once

#include <string_view>

namespace polyring {

// `library_version` is the text of MPI_Get_library_version().

/// An MPICH that sends by UCX.
bool is_mpich_on_ucx(std::string_view library_version);

/// An MPICH on UCX before 4.2: a rank that has disconnected waits in a barrier of the process manager's and
/// answers no more, though UCX's TCP wants an answer before others can disconnect (pmodels/mpich#6596).
bool may_hang_in_finalize(std::string_view library_version);

/// Whether this MPICH and the process manager that started it, as Hydra does, speak PMI-1 on the descriptor
/// that PMI_FD names: MPICH's own client, not Slurm's or PMIx's.
bool speaks_pmi1(std::string_view library_version);

/// Tells the process manager that this rank is about to end on purpose, as MPI_Finalize would, by PMI-1's
/// wire protocol (P. Balaji et al., "PMI: A Scalable Parallel Process-Management Interface for Extreme-Scale
/// Systems", EuroMPI 2010), and waits for the answer: Hydra takes an end without it for a failure, and wants
/// to be heard. Only where speaks_pmi1(). Returns false where there was no answer.
bool leave_process_manager();

/// Waits, for a second at most, until the process manager has read what this process has written to standard
/// output and standard error, where these are pipes. Hydra, once told to end the job, drops what is in them.
void await_output_read();

/// Has the process manager end the whole job with this exit code, as MPI_Abort would, by the same protocol;
/// this process too, if all is well, before the call returns. Only where speaks_pmi1().
void abort_process_manager(int code);

}  // namespace polyring
