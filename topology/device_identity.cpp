#include "topology/device_identity.hpp"

#include <fmt/format.h>

#include <charconv>

#include "topology/gpu_links.hpp"

namespace polyring {
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

}  // namespace

std::string model_of(const DeviceIdentity& identity) {
  std::string model;
  const auto add = [&](const std::string& part) { model += (model.empty() ? "" : ", ") + part; };
  if (identity.vendor != 0) add(fmt::format("{}{:04x}:{:04x}", kDevice, identity.vendor, identity.device));
  if (identity.compute_capability != 0) add(fmt::format("{}{}", kSm, identity.compute_capability));
  if (!identity.architecture.empty()) add(fmt::format("{}{}", kGcn, identity.architecture));
  return model;
}

DeviceIdentity identity_of(std::string_view model) {
  DeviceIdentity identity;
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

}  // namespace polyring
