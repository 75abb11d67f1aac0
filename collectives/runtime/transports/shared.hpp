// Ranks as processes of one host that reach each other's memory (or as threads, for tests).
//
// A rank offers: it tells another where in its memory something may be read, or written. The other does so
// straight there, and notes that the offer is finished. What lies outside of shared segments, in a user's own
// buffers, goes through one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/runtime/shared/boards.hpp"
#include "collectives/runtime/shared/options.hpp"
#include "collectives/runtime/transport.hpp"

namespace polyring {

struct SharedGroup {
  Rank rank = 0;
  int size = 1;               // of the world
  std::vector<Rank> members;  // of this host, ascending, with `rank`
  Allgather allgather;
  WaitRules rules;
};

/// Collective over the world. Messages and exchanges reach the members alone. Null on all ranks when it
/// cannot be on one of them, with `why`: "rank 3 cannot reach rank 2's memory: …". To live until the members
/// have taken all that was sent to them.
std::unique_ptr<Transport> make_shared_transport(const SharedGroup& group, std::string& why,
                                                 SharedOptions options = {});

}  // namespace polyring
