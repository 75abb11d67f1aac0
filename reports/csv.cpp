#include "reports/csv.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <concepts>
#include <vector>

#include "reports/result_fields.hpp"

namespace polyring {
namespace {

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string text_of(const std::string& text) { return text; }
std::string text_of(Source source) { return std::string(to_text(source)); }
std::string text_of(TimingMethod method) { return std::string(to_text(method)); }
std::string text_of(Verdict verdict) { return std::string(to_text(verdict)); }
std::string text_of(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, " "));
}
template <typename Number>
requires std::integral<Number> || std::floating_point<Number> std::string text_of(Number number) {
  return fmt::format("{}", number);
}

/// The columns of a row, and what it has in them.
struct Cells {
  std::vector<std::string> names{};
  std::vector<std::string> texts{};
  std::string prefix{};

  template <typename T>
  void operator()(const char* key, const T& member, const About& = {}) {
    add(prefix + key, member);
  }

 private:
  void add(std::string name, const auto& value) {
    names.push_back(std::move(name));
    texts.push_back(text_of(value));
  }
  template <typename T>
  void add(std::string name, const std::optional<T>& value) {
    names.push_back(std::move(name));
    texts.push_back(value ? text_of(*value) : "");
  }
  void add(const std::string& name, const Timing& timing) {
    prefix = name + "_";
    fields(*this, timing);
    prefix.clear();
  }
  void add(const std::string& name, const std::optional<Timing>& timing) {
    const std::size_t first = texts.size();
    add(name, timing.value_or(Timing{}));
    if (!timing) std::fill(texts.begin() + static_cast<std::ptrdiff_t>(first), texts.end(), "");
  }
  void add(std::string name, const std::vector<double>& samples) { add(std::move(name), samples.size()); }
  void add(const std::string&, const std::optional<std::vector<double>>&) {}
  void add(const std::string&, const std::vector<TimelineSpan>&) {}
  void add(const std::string&, const std::optional<std::vector<BucketPlan>>&) {}
  void add(const std::string&, const std::optional<std::vector<GpuShare>>&) {}
};

/// What is not images must not stand under images_per_second: samples_per_second has every rate, and samples
/// what it counts.
void say_samples(Cells& cells, const std::optional<std::string>& samples) {
  const auto cell = [&](const char* name) -> std::string& {
    const auto at = std::find(cells.names.begin(), cells.names.end(), name);
    assert(at != cells.names.end());
    return cells.texts[static_cast<std::size_t>(at - cells.names.begin())];
  };
  cells.names.emplace_back("samples_per_second");
  cells.texts.push_back(cell("images_per_second"));
  if (samples) {
    cell("images_per_second").clear();
  } else {
    cell("samples") = "images";
  }
}

template <typename Row>
Cells cells_of(const Row& row) {
  Cells cells;
  fields(cells, row);
  if constexpr (requires { row.images_per_second; }) say_samples(cells, row.samples);
  return cells;
}

}  // namespace

std::string csv_line(std::span<const std::string> cells) {
  assert(!cells.empty());
  std::string line;
  for (const std::string& cell : cells) line += quoted(cell) + ",";
  line.back() = '\n';
  return line;
}

std::string csv_head(const Rows& rows) {
  const auto head = [](const auto& of) {
    return csv_line(cells_of(typename std::decay_t<decltype(of)>::value_type{}).names);
  };
  return std::visit(head, rows);
}

std::string csv_body(const Rows& rows, std::size_t begin) {
  const auto body = [&](const auto& of) {
    std::string lines;
    for (std::size_t i = begin; i < of.size(); ++i) lines += csv_line(cells_of(of[i]).texts);
    return lines;
  };
  return std::visit(body, rows);
}

}  // namespace polyring
