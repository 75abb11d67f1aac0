// Smaller workloads that take exactly as long: resources that can never be the limit are left out, and what
// is alike is simulated once.
#pragma once

#include "simulation/workload.hpp"

namespace polyring {

/// Leaves out each resource that no set of flows can fill, because what reaches it must come through others
/// that are together no wider. Rates are the same without it.
Workload without_slack(Workload workload);

/// Actors, resources and flows become classes: the coarsest partition in which members of a class meet
/// members of each other class alike (an equitable partition, found by colour refinement). Max-min fair rates
/// depend on a flow's resources and on how many flows of which class cross each of them, and an actor's
/// progress on its flows; both are the same for all members at the start, and so they stay. An actor for each
/// class remains, and the same time. The workload itself where classes would save less than half.
///
/// Lanes are not told apart where they go their ways alone: two ranks may be alike of which one does in one
/// lane what the other does in another, as in the two trees of a double binary tree. Lanes do so when
/// `window` holds all of their chunks; otherwise a rank begins a lane's next chunk when another lane's is
/// done, and which lane is first tells them apart.
Workload by_classes(const Workload& workload, int window = 0);

}  // namespace polyring
