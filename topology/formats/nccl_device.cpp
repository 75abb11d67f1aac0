#include "topology/formats/nccl_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "topology/gpu_links.hpp"
#include "topology/probe/sysfs.hpp"

namespace polyring::nccl_xml {
namespace {

constexpr std::string_view kDevice = "device ";
constexpr std::string_view kSm = "sm ";
constexpr std::string_view kGcn = "gcn ";

/// The number behind `mark`, and the text is cut off in front of it; 0 where there is none.
template <typename Number>
Number number_after(std::string_view& text, std::string_view mark, int base) {
  Number number = 0;
  if (!text.starts_with(mark)) return 0;
  text.remove_prefix(mark.size());
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return error == std::errc{} ? number : Number{0};
}

void skip_comma(std::string_view& text) {
  if (text.starts_with(", ")) text.remove_prefix(2);
}

/// Lanes of SDR, DDR or QDR, which have another coding than later ones: 25 Gb/s are none.
bool is_of_qdr_or_older(std::int64_t megabits_per_second) {
  constexpr std::array kLanes{1, 2, 4, 8, 12};
  return std::ranges::any_of(std::array{2'500, 5'000, 10'000}, [&](int lane) {
    return std::ranges::find(kLanes, megabits_per_second / lane) != kLanes.end() &&
           megabits_per_second % lane == 0;
  });
}

}  // namespace

std::string model_of(const Identity& identity) {
  std::string model;
  const auto add = [&](const std::string& part) { model += (model.empty() ? "" : ", ") + part; };
  if (identity.vendor != 0) add(fmt::format("{}{:04x}:{:04x}", kDevice, identity.vendor, identity.device));
  if (identity.compute_capability != 0) add(fmt::format("{}{}", kSm, identity.compute_capability));
  if (!identity.architecture.empty()) add(fmt::format("{}{}", kGcn, identity.architecture));
  return model;
}

Identity identity_of(std::string_view model) {
  Identity identity;
  std::string_view rest = model;
  identity.vendor = number_after<unsigned>(rest, kDevice, 16);
  identity.device = number_after<unsigned>(rest, ":", 16);
  skip_comma(rest);
  identity.compute_capability = number_after<int>(rest, kSm, 10);
  skip_comma(rest);
  if (rest.starts_with(kGcn)) identity.architecture = rest.substr(kGcn.size());
  if (identity.compute_capability == 0) identity.compute_capability = compute_capability_of(model);
  return identity;
}

Bandwidth as_kept(Bandwidth bandwidth) {
  return gigabytes_per_second(rounded(bandwidth.gigabytes_per_second()));
}

Bandwidth port_bandwidth(std::int64_t megabits_per_second, NicKind kind) {
  if (megabits_per_second <= 0) return {};
  const char* generation = is_of_qdr_or_older(megabits_per_second) ? " (QDR)" : "";
  return as_kept(probe::openfabrics_rate(
      fmt::format("{} Gb/sec{}", static_cast<double>(megabits_per_second) / 1000, generation), kind));
}

bool is_ambiguous(std::int64_t megabits_per_second, NicKind kind) {
  return megabits_per_second == 40'000 && kind != NicKind::ethernet;
}

}  // namespace polyring::nccl_xml
