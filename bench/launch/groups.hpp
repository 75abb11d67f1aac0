// Hosts with something in common, which one sentence can name together.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace polyring {

/// Hosts by what is true of them, in the order of their first ones.
class Groups {
 public:
  void add(const std::string& trait, const std::string& host) {
    const auto known = std::ranges::find(groups_, trait, &Group::first);
    if (known == groups_.end()) {
      groups_.push_back({trait, {host}});
    } else {
      known->second.push_back(host);
    }
  }

  using Group = std::pair<std::string, std::vector<std::string>>;
  const std::vector<Group>& all() const { return groups_; }

 private:
  std::vector<Group> groups_;
};

}  // namespace polyring
