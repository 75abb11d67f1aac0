#include "topology/port_rates.hpp"

#include <algorithm>
#include <charconv>

namespace polyring {

Bandwidth infiniband_payload(Bandwidth line, bool old_coding) {
  return (old_coding ? 0.8 : 64.0 / 66) * line;
}

Bandwidth InfinibandRate::payload() const {
  return infiniband_payload(gigabits_per_second(gigabits), name == "qdr");
}

const std::vector<InfinibandRate>& infiniband_rates() {
  static const std::vector<InfinibandRate> rates{{"qdr", 40},  {"fdr", 56},  {"edr", 100},
                                                 {"hdr", 200}, {"ndr", 400}, {"xdr", 800}};
  return rates;
}

std::optional<InfinibandRate> infiniband_rate(std::string_view name) {
  const auto known = std::ranges::find(infiniband_rates(), name, &InfinibandRate::name);
  return known == infiniband_rates().end() ? std::nullopt : std::optional(*known);
}

std::optional<InfinibandRate> infiniband_rate(int gigabits) {
  const auto known = std::ranges::find(infiniband_rates(), gigabits, &InfinibandRate::gigabits);
  return known == infiniband_rates().end() ? std::nullopt : std::optional(*known);
}

std::optional<Bandwidth> ethernet_rate(std::string_view name) {
  int gigabits = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), gigabits);
  if (error != std::errc{} || std::string_view(end, name.data() + name.size()) != "gbe" || gigabits < 1)
    return std::nullopt;
  return gigabits_per_second(gigabits);
}

}  // namespace polyring
