// One operation of the fake NCCL, as its ranks tell it to the root.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <string>
#include <vector>

namespace polyring::software_nccl {

enum class What : std::int32_t { all_reduce, reduce_scatter, all_gather, send, receive };

inline bool is_collective(What what) { return what < What::send; }

/// Sent as it lies in memory, between processes of one build.
struct Operation {
  What what = What::all_reduce;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t reduction = ncclSum;
  std::int32_t peer = -1;        // of send and receive
  std::int32_t place = 0;        // among its group's collectives
  std::int32_t collectives = 0;  // that its group has
  std::uint64_t number = 0;      // among the communicator's operations on this rank, from 1
  std::uint64_t count = 0;       // as the caller gave it
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = 0;
};

/// What the reduced or moved element takes; 0 for a type that there is not.
std::size_t size_of(ncclDataType_t type);
/// Whether the fake can reduce these: the types and operations that Polyring has.
bool can_reduce(ncclDataType_t type, ncclRedOp_t reduction);

/// "operation 3, ncclSend of 8 ncclFloat32 to rank 1".
std::string to_text(const Operation& operation);

/// outputs[i] = inputs[0][i] op inputs[1][i] op …, in the order of ranks, as Polyring's host kernels do it.
void reduce(const Operation& operation, std::byte* output, const std::vector<const std::byte*>& inputs);

/// What ends a communicator: NCCL's code, and a sentence for people.
struct Fault {
  ncclResult_t code;
  std::string text;
};

}  // namespace polyring::software_nccl
