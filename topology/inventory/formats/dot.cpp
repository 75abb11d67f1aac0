#include "topology/inventory/formats/dot.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace polyring::dot {
namespace {

/// Text from files and firmware, as it must stand between the quotes of a label: Graphviz knows escapes and
/// HTML's entities, and wants UTF-8.
std::string escaped(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  const std::string quoted =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string out;
  for (const char c : quoted.substr(1, quoted.size() - 2)) out += c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

}  // namespace

std::string head(const std::string& title) {
  return fmt::format(
      "graph polyring {{\n  {}\n"
      "  graph [fontname=\"Helvetica\", style=rounded, color=\"#B6C0CA\", ranksep=0.6]\n"
      "  node [fontname=\"Helvetica\", fontsize=10, shape=box, style=\"rounded,filled\", "
      "fillcolor=\"#E8F1F8\"]\n"
      "  edge [fontname=\"Helvetica\", fontsize=8]\n",
      label({title}));
}

std::string label(const std::vector<std::string>& lines) {
  std::vector<std::string> shown;
  for (const std::string& line : lines) {
    if (!line.empty()) shown.push_back(escaped(line));
  }
  return fmt::format("label=\"{}\"", fmt::join(shown, "\\n"));
}

std::string width(Bandwidth bandwidth) {
  if (!bandwidth.known()) return "penwidth=1, style=dotted";
  return fmt::format("penwidth={:.2f}", 0.5 + std::sqrt(bandwidth.gigabytes_per_second()) / 3);
}

}  // namespace polyring::dot
