// Smaller workloads that take exactly as long: resources that can never be the limit are left out, and equal
// ranks are simulated once.
#pragma once

#include "simulation/workload.hpp"

namespace polyring {

/// Leaves out each resource that no set of flows can fill, because what reaches it must come through others
/// that are together no wider. Rates are the same without it. A workload of classes stays as it is: what two
/// of its flows cross may be two members of one class.
Workload without_slack(Workload workload);

/// Actors, resources and flows become classes: the coarsest partition in which all members of a class meet
/// equally many members of each other class (an equitable partition, found by colour refinement). Max-min
/// fair rates depend on a flow's resources and on the number of flows of each class that cross them. An
/// actor's progress depends on its flows. Both are the same for all members at the start, and so they stay
/// the same. The result has an actor for each class and takes the same time. If classes would save less than
/// half, the result is the workload itself.
///
/// Lanes that run independently of each other are not told apart: two ranks are equal even if one does in one
/// lane what the other does in another lane, as in the two trees of a double binary tree. Lanes are
/// independent when `window` holds all of their chunks. Otherwise a rank begins a lane's next chunk when
/// another lane's is done, and the order of the lanes tells them apart.
Workload by_classes(const Workload& workload, int window = 0);

}  // namespace polyring
