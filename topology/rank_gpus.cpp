#include "topology/rank_gpus.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/index.hpp"

namespace polyring {
namespace {

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, {}, [](unsigned char c) { return std::tolower(c); },
      [](unsigned char c) { return std::tolower(c); });
}

}  // namespace

std::optional<int> gpu_at(const Machine& machine, std::string_view pci) {
  const auto at = std::ranges::find_if(
      machine.gpus, [&](const Gpu& gpu) { return !gpu.pci.empty() && same_letters(gpu.pci, pci); });
  return at == machine.gpus.end() ? std::nullopt : std::optional(static_cast<int>(at - machine.gpus.begin()));
}

Machine with_gpus(const Machine& machine, std::span<const int> gpus) {
  Machine smaller = machine;
  smaller.gpus.clear();
  std::vector<int> place(machine.gpus.size(), -1);  // of each GPU in the smaller machine
  for (const int gpu : gpus) {
    place[index(gpu)] = static_cast<int>(smaller.gpus.size());
    smaller.gpus.push_back(machine.gpus[index(gpu)]);
  }
  const auto is_gone = [&](DeviceId id) { return id.kind == DeviceKind::gpu && place[index(id.index)] < 0; };
  std::erase_if(smaller.links, [&](const Link& link) { return is_gone(link.from) || is_gone(link.to); });
  for (Link& link : smaller.links) {
    for (DeviceId* end : {&link.from, &link.to})
      if (end->kind == DeviceKind::gpu) end->index = place[index(end->index)];
  }
  return smaller;
}

}  // namespace polyring
