// Routes as their resources' names.
#pragma once

#include <string>
#include <vector>

#include "topology/route.hpp"

namespace polyring::testing {

/// The names of the resources from one rank to another.
inline std::vector<std::string> route_names(const Router& router, int from, int to) {
  std::vector<Crossing> route;
  router.route(from, to, route);
  std::vector<std::string> names;
  for (const Crossing& crossing : route) names.push_back(router.name(crossing.resource));
  return names;
}

}  // namespace polyring::testing
