// What was taken and what was passed on, and why; and the file that says so.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace polyring::interposer {

enum class Call { allreduce, reduce_scatter_block, allgather };
inline constexpr int kCalls = 3;

/// Why a call was passed on.
enum class Why {
  small,       // shorter than the threshold, or of no elements
  type,        // not one of the types that are taken
  op,          // not sum, prod, min or max, or one that has other bits for this type
  words,       // an allgather of a number of bytes that is no multiple of 4
  large,       // an allgather of more than 1 GiB of a rank
  one_rank,    // the communicator has no other rank
  intercomm,   // nor is an intercommunicator for us
  arguments,   // MPI says what is wrong with them
  off,         // a rank has POLYRING_MPI=off, or another version of the library
  not_joined,  // the ranks could not be joined: the notes say why
  nested,      // a call of the library's own, or of one that its calls have called
  finalizing,  // MPI_Finalize is under way
  other_mpi    // the program's MPI is of another kind than the library's
};
inline constexpr int kWhys = 13;

void count_taken(Call call);
void count_failed(Call call);
void count_passed_on(Call call, Why why);
/// A sentence for the file; each is kept once. Left out where there is no memory for it.
void note(const std::string& sentence) noexcept;

/// {"rank": …, "taken": {call: number}, "failed": {…}, "passed_on": {call: {why: number}}, "notes": […]}
std::string counters_as_json(int rank);
/// To FILE.RANK, if the user wants one. Says on stderr what fails.
void write_counters(int rank) noexcept;

}  // namespace polyring::interposer
