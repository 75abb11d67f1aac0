// What all graphs for Graphviz have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace polyring::dot {

/// How a graph begins, under this title: `graph polyring {`, and the look of nodes and edges.
std::string head(const std::string& title);

/// The attribute `label` with these lines, without those that are empty. Whatever stands in them is escaped.
std::string label(const std::vector<std::string>& lines);

/// Attributes of an edge: the wider the more it carries, dotted where that is unknown.
std::string width(Bandwidth bandwidth);

}  // namespace polyring::dot
