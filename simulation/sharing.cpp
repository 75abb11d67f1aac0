#include "simulation/sharing.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "base/index.hpp"

namespace polyring {
namespace {

/// Resources that are full at levels so near to each other are full together: they differ by rounding alone.
constexpr double kSameLevel = 1 + 1e-13;

}  // namespace

Sharing::Sharing(const std::vector<double>& capacities) : resources_(capacities.size()) {
  for (std::size_t i = 0; i < capacities.size(); ++i) resources_[i].capacity = capacities[i];
}

void Sharing::add(Id flow, std::span<const Use> uses) {
  if (index(flow) >= members_.size()) {
    members_.resize(index(flow) + 1);
    ways_.resize(index(flow) + 1);
  }
  Member& member = members_[index(flow)];
  Way& way = ways_[index(flow)];
  way.uses = uses;
  member.rate = uses.empty() ? std::numeric_limits<double>::infinity() : 0;
  member.limit = kNone;
  if (uses.empty()) unbound_.push_back(flow);
  if (way.room < uses.size()) {
    way.first_position = positions_.size();
    way.room = uses.size();
    positions_.resize(positions_.size() + uses.size());
  }
  for (int i = 0; i < static_cast<int>(uses.size()); ++i) {
    const Use& use = uses[index(i)];
    Resource& resource = resources_[index(use.resource)];
    position(flow, i) = static_cast<int>(resource.crossings.size());
    resource.crossings.push_back({flow, i, use.weight});
    mark(use.resource);
  }
}

void Sharing::remove(Id flow) {
  const std::span<const Use> uses = ways_[index(flow)].uses;
  for (int i = 0; i < static_cast<int>(uses.size()); ++i) {
    const int used = uses[index(i)].resource;
    Resource& resource = resources_[index(used)];
    const Crossing last = resource.crossings.back();
    const int at = position(flow, i);
    resource.crossings[index(at)] = last;
    position(last.flow, last.use) = at;
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

/// The flows that have come, and those that were held back where one came or went, are filled anew, between
/// the others with the rates that they have. Where that leaves one of the others wronged, or a wrong done to
/// one of these, the others concerned are filled anew as well: rates are max-min fair when, and only when,
/// each flow has a full resource on which nobody has more.
void Sharing::refill(int dirty) {
  touch(dirty);
  do {
    reach_dirty();
    if (reached_.empty()) break;
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
  for (const Use& use : ways_[index(flow)].uses) touch(use.resource);
}

void Sharing::reach_dirty() {
  for (; examined_ < touched_.size(); ++examined_) {
    const int at = touched_[examined_];
    Resource& resource = resources_[index(at)];
    if (!resource.dirty) continue;
    resource.dirty = false;
    for (const Crossing crossing : resource.crossings) {
      const int limit = members_[index(crossing.flow)].limit;
      if (limit == at || limit == kNone) reach(crossing.flow);
    }
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

/// One level after another, the fullest resources first. What others leave of a resource never brings its
/// level down, so that one is looked at again only when it comes first.
void Sharing::fill() {
  levels_.clear();
  for (const int i : touched_) {
    const Resource& resource = resources_[index(i)];
    if (resource.rising > 0) levels_.push_back({resource.left / resource.weight, i});
  }
  const auto later = [](const Level& a, const Level& b) { return a.level > b.level; };
  std::make_heap(levels_.begin(), levels_.end(), later);
  double filled = 0;
  while (!levels_.empty()) {
    std::pop_heap(levels_.begin(), levels_.end(), later);
    Level& first = levels_.back();
    const Resource& resource = resources_[index(first.resource)];
    const double level = resource.left / resource.weight;
    if (resource.rising > 0 && level > first.level) {
      first.level = level;
      std::push_heap(levels_.begin(), levels_.end(), later);
      continue;
    }
    const int full = first.resource;
    levels_.pop_back();
    if (resource.rising == 0) continue;
    if (level > filled * kSameLevel) filled = level;
    fix(full, filled);
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
    for (const Use& use : ways_[index(crossing.flow)].uses) {
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
