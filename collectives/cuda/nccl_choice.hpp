// What NCCL's environment variables say about the algorithm and the protocol that it uses.
#pragma once

#include <string>
#include <string_view>

#include "collectives/schedule/schedule.hpp"

namespace polyring {

/// In lower case, such as "ring" and "ll128"; empty where NCCL chooses by itself, which it tells nobody.
struct NcclChoice {
  std::string algorithm;
  std::string protocol;
};

/// What NCCL_ALGO and NCCL_PROTO leave for this collective, if they leave one: a single name, for all
/// collectives or for this one ("tree;allreduce:ring"), which can run this collective.
NcclChoice nccl_choice(Collective collective, std::string_view algorithms, std::string_view protocols);

/// Of this process's environment. NCCL adds to that what its own file of settings says, when the first
/// communicator starts.
NcclChoice nccl_choice(Collective collective);

/// "nccl:ring"; "nccl" where the algorithm is unknown.
std::string nccl_name(const NcclChoice& choice);

}  // namespace polyring
