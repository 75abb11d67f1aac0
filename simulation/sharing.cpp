#include "simulation/sharing.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace polyring {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// Resources that are full at levels so near to each other are full together: they differ by rounding alone.
constexpr double kSameLevel = 1 + 1e-13;

}  // namespace

Sharing::Sharing(const std::vector<double>& capacities) : resources_(capacities.size()) {
  for (std::size_t i = 0; i < capacities.size(); ++i) resources_[i].capacity = capacities[i];
}

void Sharing::add(Id flow, std::span<const Use> uses) {
  if (index(flow) >= members_.size()) members_.resize(index(flow) + 1);
  Member& member = members_[index(flow)];
  member.uses = uses;
  member.rate = uses.empty() ? std::numeric_limits<double>::infinity() : 0;
  if (uses.empty()) unbound_.push_back(flow);
  if (member.room < uses.size()) {
    member.first_position = positions_.size();
    member.room = uses.size();
    positions_.resize(positions_.size() + uses.size());
  }
  for (int i = 0; i < static_cast<int>(uses.size()); ++i) {
    const Use& use = uses[index(i)];
    Resource& resource = resources_[index(use.resource)];
    position(member, i) = static_cast<int>(resource.crossings.size());
    resource.crossings.push_back({flow, i, use.weight});
    mark(use.resource);
  }
}

void Sharing::remove(Id flow) {
  const Member& member = members_[index(flow)];
  for (int i = 0; i < static_cast<int>(member.uses.size()); ++i) {
    const int used = member.uses[index(i)].resource;
    Resource& resource = resources_[index(used)];
    const Crossing last = resource.crossings.back();
    const int at = position(member, i);
    resource.crossings[index(at)] = last;
    position(members_[index(last.flow)], last.use) = at;
    resource.crossings.pop_back();
    mark(used);
  }
}

void Sharing::mark(int resource) {
  if (resources_[index(resource)].dirty) return;
  resources_[index(resource)].dirty = true;
  dirty_.push_back(resource);
}

/// Flows far apart from each other are filled by themselves, since one that comes or goes rarely reaches far.
const std::vector<Sharing::Id>& Sharing::share() {
  changed_.clear();
  for (const int resource : dirty_) {
    if (resources_[index(resource)].dirty) refill(resource);
  }
  dirty_.clear();
  changed_.insert(changed_.end(), unbound_.begin(), unbound_.end());
  unbound_.clear();
  return changed_;
}

/// The flows that share a resource with one that came or went are filled anew, between the others with the
/// rates that they have. Where that leaves one of the others wronged, or a wrong done to one of these, the
/// others concerned are filled anew as well: rates are max-min fair when, and only when, each flow has a full
/// resource on which nobody has more.
void Sharing::refill(int dirty) {
  touch(dirty);
  do {
    reach_dirty();
    open();
    fill();
  } while (reach_wronged());
  for (const int resource : touched_) resources_[index(resource)].touched = false;
  for (const Id flow : reached_) members_[index(flow)].reached = false;
  changed_.insert(changed_.end(), reached_.begin(), reached_.end());
  touched_.clear();
  reached_.clear();
  examined_ = 0;
}

void Sharing::touch(int resource) {
  if (resources_[index(resource)].touched) return;
  resources_[index(resource)].touched = true;
  touched_.push_back(resource);
}

void Sharing::reach(Id flow) {
  Member& member = members_[index(flow)];
  if (member.reached) return;
  member.reached = true;
  reached_.push_back(flow);
  for (const Use& use : member.uses) touch(use.resource);
}

/// A flow that has come has no rate until it is reached.
void Sharing::reach_dirty() {
  for (; examined_ < touched_.size(); ++examined_) {
    Resource& resource = resources_[index(touched_[examined_])];
    if (!resource.dirty) continue;
    resource.dirty = false;
    for (const Crossing crossing : resource.crossings) reach(crossing.flow);
  }
}

/// What is left to the reached flows on each resource.
void Sharing::open() {
  for (const Id flow : reached_) members_[index(flow)].fixed = false;
  for (const int i : touched_) {
    Resource& resource = resources_[index(i)];
    resource.left = resource.capacity;
    resource.weight = 0;
    resource.rising = 0;
    resource.highest = 0;
    for (const Crossing crossing : resource.crossings) {
      const Member& member = members_[index(crossing.flow)];
      if (member.reached) {
        resource.weight += crossing.weight;
        ++resource.rising;
      } else {
        resource.left -= crossing.weight * member.rate;
        resource.highest = std::max(resource.highest, member.rate);
      }
    }
  }
}

/// One level after another, the fullest resources first.
void Sharing::fill() {
  for (double filled = 0;;) {
    double level = std::numeric_limits<double>::infinity();
    for (const int i : touched_) {
      const Resource& resource = resources_[index(i)];
      if (resource.rising > 0) level = std::min(level, resource.left / resource.weight);
    }
    if (level == std::numeric_limits<double>::infinity()) return;
    level = filled = std::max(level, filled);  // levels never fall, but for rounding
    for (const int i : touched_) {
      const Resource& resource = resources_[index(i)];
      if (resource.rising > 0 && resource.left / resource.weight <= level * kSameLevel) fix(i, level);
    }
  }
}

/// All flows across the resource have this rate.
void Sharing::fix(int full, double level) {
  for (const Crossing crossing : resources_[index(full)].crossings) {
    Member& member = members_[index(crossing.flow)];
    if (!member.reached || member.fixed) continue;
    member.fixed = true;
    member.limit = full;
    member.rate = level;
    for (const Use& use : member.uses) {
      Resource& resource = resources_[index(use.resource)];
      resource.left -= use.weight * level;
      resource.weight -= use.weight;
      resource.highest = std::max(resource.highest, level);
      --resource.rising;
    }
  }
}

/// Reaches those that others' new rates leave no longer fair; false when there are none.
bool Sharing::reach_wronged() {
  const std::size_t before = reached_.size();
  const std::size_t touched = touched_.size();
  for (std::size_t i = 0; i < touched; ++i) {
    const Resource& resource = resources_[index(touched_[i])];
    double wronged = std::numeric_limits<double>::infinity();  // the least rate of a reached flow that is
    for (const Crossing crossing : resource.crossings) {
      const Member& member = members_[index(crossing.flow)];
      if (member.limit != touched_[i] || fair(member, resource)) continue;
      if (member.reached) {
        wronged = std::min(wronged, member.rate);
      } else {
        reach(crossing.flow);
      }
    }
    if (wronged == std::numeric_limits<double>::infinity()) continue;
    for (const Crossing crossing : resource.crossings) {
      if (members_[index(crossing.flow)].rate > wronged) reach(crossing.flow);
    }
  }
  return reached_.size() > before;
}

/// Whether the resource that limits the flow is full, and nobody has more of it.
bool Sharing::fair(const Member& member, const Resource& resource) const {
  constexpr double kRounding = 1e-13;
  return resource.left <= kRounding * resource.capacity && resource.highest <= member.rate * (1 + kRounding);
}

}  // namespace polyring
