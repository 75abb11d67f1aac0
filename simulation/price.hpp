// The price of a schedule: how long it would take on a cluster, stage by stage.
//
// Within a step all transfers happen at once and share each link, NIC and uplink that they cross:
//
//     time of a step = max over its transfers of (latency + max over the resources crossed of load /
//     bandwidth)
//
// A chunk passes through all steps of all stages one after another: T. Further chunks follow in a pipeline;
// each adds the time for which the busiest resource works for one chunk, or T / window where latency keeps
// all resources waiting:
//
//     time = T + (chunks − 1) · max(busiest resource per chunk, T / window)
//
// Lanes run side by side, step by step together. What this leaves out: the time of the reductions themselves,
// any overhead per message beyond the latency of its route, and contention inside the spine of the fabric.
#pragma once

#include <string>
#include <vector>

#include "collectives/schedule/planner.hpp"
#include "collectives/schedule/program.hpp"
#include "collectives/schedule/schedule.hpp"
#include "topology/route.hpp"

namespace polyring {

struct StagePrice {
  Stage stage;  // of the first lane that has it
  std::string pattern;
  int groups_of = 1;           // ranks in a group
  Seconds time;                // of one chunk
  ResourceId bottleneck = -1;  // whose load took longest; -1 when no known bandwidth was crossed
};

struct Price {
  Seconds time;
  std::vector<StagePrice> stages;
  ResourceId bottleneck = -1;  // the resource that is busy longest
};

/// Throws a usage Error when the cluster's ranks are not the schedule's, when a step has more transfers
/// (2^23) than can be priced, or for a window below 1. `classes`: one of equal ranks is looked at for all,
/// which changes nothing; a bottleneck is the first of its class.
Price price(const Schedule& schedule, const Cluster& cluster, const Router& router, ElementSizes sizes,
            int window = kDefaultWindow, bool classes = true);

/// How long each resource is busy with the whole payload, by its id. Throws as price() does.
std::vector<Seconds> busy_times(const Schedule& schedule, const Cluster& cluster, const Router& router,
                                ElementSizes sizes);

/// The first link of unknown speed that a transfer of the schedule crosses, as Router::unknown_speed() names
/// it; empty when it crosses none. Such links cost nothing in a price, which is then none.
std::string unknown_speed(const Schedule& schedule, const Router& router);

struct PricedPlan {
  Plan plan;
  Price price;
  std::string unknown{};  // unknown_speed() of it
};

/// The plans for `count` elements, in their order. Those that differ from the one before in their chunk alone
/// are quickly priced: a chunk is taken as that part of its lane, to the byte. Plans that price() refuses are
/// left out; throws as it does when all are.
std::vector<PricedPlan> price_each(std::vector<Plan> plans, const Cluster& cluster, const Router& router,
                                   Count count, ElementSizes sizes);

/// The candidates for a problem: those that cross links of known speed alone, then the others, each cheapest
/// first; among those that are equal to 7 digits the one with fewer lanes and larger chunks.
std::vector<PricedPlan> price_plans(const Problem& problem, const Cluster& cluster, const Router& router,
                                    const PlanConstraints& constraints = {});

/// Of the plans, which come by price, the one that has the fewest chunks in all its lanes among those that
/// are as good as the first, dearer by 5 % at most, and cross no link of unknown speed unless it does: the
/// first itself where none has fewer.
std::size_t fewest_chunks(const std::vector<PricedPlan>& plans, int ranks, Count count, ElementSizes sizes);

}  // namespace polyring
