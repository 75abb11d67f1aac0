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
  if (index(flow) >= members_.size()) {
    members_.resize(index(flow) + 1);
    rates_.resize(index(flow) + 1);
  }
  Member& member = members_[index(flow)];
  member.uses = uses;
  member.positions.resize(uses.size());
  for (std::size_t i = 0; i < uses.size(); ++i) {
    Resource& resource = resources_[index(uses[i].resource)];
    member.positions[i] = static_cast<int>(resource.crossings.size());
    resource.crossings.push_back({flow, static_cast<int>(i)});
    mark(uses[i].resource);
  }
  if (!uses.empty()) return;
  rates_[index(flow)] = std::numeric_limits<double>::infinity();
  unbound_.push_back(flow);
}

void Sharing::remove(Id flow) {
  Member& member = members_[index(flow)];
  for (std::size_t i = 0; i < member.uses.size(); ++i) {
    Resource& resource = resources_[index(member.uses[i].resource)];
    const Crossing last = resource.crossings.back();
    resource.crossings[index(member.positions[i])] = last;
    members_[index(last.flow)].positions[index(last.use)] = member.positions[i];
    resource.crossings.pop_back();
    mark(member.uses[i].resource);
  }
}

void Sharing::mark(int resource) {
  if (resources_[index(resource)].dirty) return;
  resources_[index(resource)].dirty = true;
  dirty_.push_back(resource);
}

void Sharing::reach(int resource) {
  if (resources_[index(resource)].reached) return;
  resources_[index(resource)].reached = true;
  reached_.push_back(resource);
}

const std::vector<Sharing::Id>& Sharing::share() {
  changed_.clear();
  std::swap(changed_, unbound_);
  // What shares a resource with a flow that came or went, and what shares one with that, and so on.
  for (const int resource : dirty_) reach(resource);
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    Resource& resource = resources_[index(reached_[i])];
    resource.left = resource.capacity;
    resource.weight = 0;
    resource.rising = static_cast<int>(resource.crossings.size());
    for (const Crossing crossing : resource.crossings) {
      Member& member = members_[index(crossing.flow)];
      resource.weight += member.uses[index(crossing.use)].weight;
      if (member.reached) continue;
      member.reached = true;
      member.fixed = false;
      changed_.push_back(crossing.flow);
      for (const Use& use : member.uses) reach(use.resource);
    }
  }
  fill();
  for (const int resource : reached_) resources_[index(resource)].reached = false;
  for (const int resource : dirty_) resources_[index(resource)].dirty = false;
  for (const Id flow : changed_) members_[index(flow)].reached = false;
  reached_.clear();
  dirty_.clear();
  return changed_;
}

/// Where all the reached resources' flows are: one level after another, the fullest resources first.
void Sharing::fill() {
  for (double filled = 0;;) {
    double level = std::numeric_limits<double>::infinity();
    for (const int i : reached_) {
      const Resource& resource = resources_[index(i)];
      if (resource.rising > 0) level = std::min(level, resource.left / resource.weight);
    }
    if (level == std::numeric_limits<double>::infinity()) return;
    level = filled = std::max(level, filled);  // levels never fall, but for rounding
    for (const int i : reached_) {
      const Resource& resource = resources_[index(i)];
      if (resource.rising > 0 && resource.left / resource.weight <= level * kSameLevel) fix(i, level);
    }
  }
}

/// All flows across the resource have this rate.
void Sharing::fix(int full, double level) {
  for (const Crossing crossing : resources_[index(full)].crossings) {
    Member& member = members_[index(crossing.flow)];
    if (member.fixed) continue;
    member.fixed = true;
    rates_[index(crossing.flow)] = level;
    for (const Use& use : member.uses) {
      Resource& resource = resources_[index(use.resource)];
      resource.left -= use.weight * level;
      resource.weight -= use.weight;
      --resource.rising;
    }
  }
}

}  // namespace polyring
