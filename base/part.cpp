#include "base/part.hpp"

#include <charconv>
#include <system_error>

namespace polyring {

std::optional<double> read_part(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit == "%") number /= 100;
  if (error != std::errc{} || (!unit.empty() && unit != "%") || !(number >= 0 && number <= 1))
    return std::nullopt;
  return number;
}

}  // namespace polyring
