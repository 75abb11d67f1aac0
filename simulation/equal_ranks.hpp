// EqualRanks: ranks that a schedule and a cluster cannot tell apart, so that one of them is looked at for
// all.
//
// A turn of the rank grid adds the same number to one coordinate of every rank, modulo the dimension. It may
// leave everything as it was: the moves of the patterns, the routes inside a host, which hosts share a leaf,
// a pod or an NVLink domain. Ranks and resources that such turns take to each other form a class. All members
// of a class meet equally many members of each other class, as symmetry.hpp wants it (Godsil and Royle,
// "Algebraic Graph Theory", 2001, section 9.3: orbits are an equitable partition). Nothing of the size of
// the cluster is written down to find them.
#pragma once

#include <span>
#include <vector>

#include "collectives/schedule/schedule.hpp"
#include "simulation/divided.hpp"
#include "topology/route.hpp"

namespace polyring {

class EqualRanks {
 public:
  /// None are known to be: each of the ranks is a class of its own.
  explicit EqualRanks(int ranks);
  /// All blocks of the schedule are equally long, see divided.hpp. The strides of each lane's dimensions
  /// rise, each a multiple of the one before times its size. Keeps a reference to the router.
  EqualRanks(const Schedule& schedule, const Cluster& cluster, const Router& router);

  bool all_differ() const { return turns_.empty(); }
  /// The first of each class, in their order.
  std::span<const Rank> firsts() const { return firsts_; }
  /// The class of a rank, as an index of firsts(); where all differ, any number is its own class.
  int class_of(Rank rank) const;
  /// A class of resources.
  struct Met {
    ResourceId first = -1;  // of the class
    /// If each rank of a class makes one and the same transfer over resources of this class, so many of them
    /// cross each resource.
    int times = 1;
  };
  Met met(ResourceId resource) const;

 private:
  /// Of ranks or hosts: what differs by a multiple of `step` inside a block, modulo the block.
  struct Turn {
    int step = 1;
    int block = 1;
    int number() const { return block / step; }
    bool stays_in(int group) const { return group % block == 0; }
    /// Whether each group of consecutive ones is moved as a whole, or within itself.
    bool keeps_groups_of(int hosts) const { return step % hosts == 0 || stays_in(hosts); }
  };

  /// False where the turn does not leave the cluster as it was.
  bool add_turn(Turn turn, const Cluster& cluster);
  void join_in_host(std::span<const int> to);
  void count_in_host();
  static int first_member(std::span<const Turn> turns, int member);

  /// Of the uplinks of a level of leaves or pods.
  int times_of_uplinks(int level) const;

  const Router* router_ = nullptr;
  std::vector<Turn> turns_;       // of ranks, those of lower coordinates first
  std::vector<Turn> host_turns_;  // the part of them that moves hosts
  int turned_in_host_ = 1;        // of a host's ranks how many are in a class
  std::vector<int> levels_;       // Router::hosts_per_level()
  std::vector<Met> in_host_;      // of each resource of a host, the first one by its number there
  std::vector<Rank> firsts_;
};

/// Those of the schedule where `classes` are wanted and all its blocks are equally long; else all differ.
/// `divided` is the schedule's. Keeps a reference to the router.
EqualRanks equal_ranks(const Schedule& schedule, const Divided& divided, const Cluster& cluster,
                       const Router& router, bool classes);

}  // namespace polyring
