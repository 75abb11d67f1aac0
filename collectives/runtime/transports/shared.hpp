// Ranks as processes of one host that reach each other's memory (or as threads, for tests).
//
// A rank offers: it tells another where in its memory something may be read, or written. The other does so
// straight there, and notes that the offer is finished. What lies outside of shared segments, in a user's own
// buffers, goes through one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/runtime/bootstrap.hpp"
#include "collectives/runtime/shared/options.hpp"
#include "collectives/runtime/transport.hpp"

namespace polyring {

/// Collective. `members` are the ranks of this one's host, ascending, with itself: messages and exchanges
/// reach these alone. Null on all ranks when it cannot be on one of them, with `why`: "rank 3 cannot reach
/// rank 2's memory: …". To live until the members have taken all that was sent to them.
std::unique_ptr<Transport> make_shared_transport(const Bootstrap& bootstrap, std::vector<Rank> members,
                                                 WaitRules rules, std::string& why,
                                                 SharedOptions options = {});

}  // namespace polyring
