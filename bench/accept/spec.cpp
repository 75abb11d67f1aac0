#include "bench/accept/spec.hpp"

#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/names.hpp"
#include "base/units.hpp"

namespace polyring {
namespace {

/// toml++ follows the parts of a dotted key by recursion: no more of them than a stack holds.
constexpr Bytes kLargest{32 << 10};
constexpr double kMostReference = 1e18;
constexpr std::string_view kForm = R"([reference, lower, upper, unit], as in [10.5, -0.05, "none", "GB/s"])";

/// How much of `to` one `from` is; nothing where these measure different things.
std::optional<double> conversion(const std::string& from, const std::string& to) {
  if (from == to) return 1;
  if (from.starts_with(' ') || from.find_first_of("0123456789.+-") != std::string::npos) return std::nullopt;
  using Size = std::optional<double> (*)(const std::string&);
  const Size part = [](const std::string& unit) {
    return unit.empty() ? std::optional(1.0) : unit == "%" ? std::optional(0.01) : std::nullopt;
  };
  const Size rate = [](const std::string& unit) -> std::optional<double> {
    try {
      return parse_bandwidth("1" + unit, "").value;
    } catch (const Error&) {
      return std::nullopt;
    }
  };
  const Size time = [](const std::string& unit) -> std::optional<double> {
    try {
      return unit.empty() ? std::nullopt : std::optional(parse_seconds("1" + unit, "").value);
    } catch (const Error&) {
      return std::nullopt;
    }
  };
  for (const Size size : {part, rate, time})
    if (const auto a = size(from), b = size(to); a && b) return *a / *b;
  return std::nullopt;
}

std::vector<std::string> names_of(const std::vector<Quantity>& quantities) {
  std::vector<std::string> names;
  for (const Quantity& quantity : quantities) names.push_back(quantity.name);
  return names;
}

class Reader {
 public:
  Reader(const std::string& file, std::span<const Check* const> known) : file_(file), known_(known) {
    for (const Check* check : known) names_.emplace_back(check->name);
  }

  Specification read(std::string_view text) {
    if (text.size() > kLargest.value)
      usage_error("'{}' has {} bytes, and a specification at most {}; give another file", file_, text.size(),
                  to_text(kLargest));
    toml::table root;
    try {
      root = toml::parse(text, std::string_view(file_));
    } catch (const toml::parse_error& error) {
      usage_error("{}:{}: this is not TOML: {}; see docs/acceptance.md for what a specification looks like",
                  file_, error.source().begin.line, error.description());
    }
    for (const auto& [key, value] : root) {
      if (key == "checks")
        read_checks(value);
      else if (key == "reference")
        read_references(value);
      else
        wrong(key, unknown_name("key", key.str(), std::vector<std::string>{"checks", "reference"}));
    }
    if (specification_.checks.empty() && specification_.references.empty())
      usage_error("'{}' asks for nothing; give it 'checks' or a [reference.CHECK]", file_);
    return std::move(specification_);
  }

 private:
  /// `where`: a key or a value of the file.
  [[noreturn]] void wrong(const auto& where, const std::string& what) const {
    usage_error("{}:{}: {}", file_, where.source().begin.line, what);
  }

  std::string source_of(const auto& where) const {
    return fmt::format("spec {}:{}", file_, where.source().begin.line);
  }

  const Check& check_named(const auto& where, const std::string& name) const {
    const auto at = std::ranges::find(names_, name);
    if (at == names_.end()) wrong(where, unknown_name("check", name, names_));
    return *known_[static_cast<std::size_t>(at - names_.begin())];
  }

  void read_checks(const toml::node& value) {
    const toml::array* list = value.as_array();
    if (list == nullptr || list->empty())
      wrong(value,
            R"('checks' must be a list of names, such as ["links", "all.allreduce"]; without it all run)");
    for (const toml::node& one : *list) {
      const auto name = one.value_exact<std::string>();
      if (!name) wrong(one, fmt::format("'checks' has {}; name a check", type_of(one)));
      specification_.checks.emplace_back(check_named(one, *name).name);
    }
    specification_.checks_source = source_of(value);
  }

  void read_references(const toml::node& value) {
    const toml::table* of_checks = value.as_table();
    if (of_checks == nullptr)
      wrong(value, "'reference' must be tables, such as [reference.\"all.allreduce\"]");
    for (const auto& [name, references] : *of_checks) {
      const Check& check = check_named(name, std::string(name.str()));
      if (check.quantities.empty())
        wrong(name, fmt::format("{} measures nothing that could have a reference; leave it out", check.name));
      const toml::table* table = references.as_table();
      if (table == nullptr)
        wrong(name, fmt::format("'reference.{}' must be a table of {}", check.name, kForm));
      for (const auto& [key, reference] : *table) read_reference(check, key, reference);
    }
  }

  void read_reference(const Check& check, const toml::key& key, const toml::node& value) {
    Reference reference;
    reference.key = key.str();
    reference.check = check.name;
    std::string_view rest = read_quantity(check, key, reference);
    if (rest.starts_with('@')) rest = read_size(key, rest.substr(1), reference);
    if (rest.starts_with(kOf)) reference.subject = rest.substr(kOf.size());
    for (const Reference& other : specification_.references) {
      if (other.check == reference.check && other.quantity.name == reference.quantity.name &&
          other.size_bytes == reference.size_bytes && other.subject == reference.subject)
        wrong(key, fmt::format("'{}' says again what '{}' says; leave one out", reference.key, other.key));
    }
    read_threshold(value, reference);
    reference.threshold.source = source_of(value);
    specification_.references.push_back(std::move(reference));
  }

  /// Returns what is behind its name.
  std::string_view read_quantity(const Check& check, const toml::key& key, Reference& reference) const {
    for (const Quantity& quantity : check.quantities) {
      if (!key.str().starts_with(quantity.name)) continue;
      const std::string_view rest = key.str().substr(quantity.name.size());
      if (!rest.empty() && !rest.starts_with('@') && !rest.starts_with(kOf)) continue;
      reference.quantity = quantity;
      return rest;
    }
    const std::string name(key.str().substr(0, std::min(key.str().find('@'), key.str().find(kOf))));
    wrong(key, unknown_name(fmt::format("quantity of {}", check.name), name, names_of(check.quantities)));
  }

  /// Returns what is behind it.
  std::string_view read_size(const toml::key& key, std::string_view text, Reference& reference) const {
    const std::size_t end = std::min(text.size(), text.find(kOf));
    try {
      reference.size_bytes = parse_bytes(text.substr(0, end), "size").value;
    } catch (const Error& error) {
      wrong(key, error.what());
    }
    if (reference.size_bytes == 0) wrong(key, "no payload has 0 bytes; give another size");
    return text.substr(end);
  }

  void read_threshold(const toml::node& value, Reference& reference) const {
    const toml::array* list = value.as_array();
    const std::string& key = reference.key;
    if (list == nullptr || list->size() != 4) wrong(value, fmt::format("'{}' must be {}", key, kForm));
    const auto number = list->get(0)->value<double>();
    if (!number || list->get(0)->is_boolean() || !(*number >= 0 && *number <= kMostReference))
      wrong(value, fmt::format("the reference of '{}' must be a number from 0 to {:g}", key, kMostReference));
    const auto lower = limit(*list->get(1), key, "lower");
    const auto upper = limit(*list->get(2), key, "upper");
    if (!lower && !upper) wrong(value, fmt::format("'{}' limits nothing; give it lower or upper", key));
    if (lower && !(*lower > -1 && *lower <= 0))
      wrong(value,
            fmt::format("lower of '{}' must be a part of the reference from above -1 to 0, such as -0.05, "
                        "or \"none\"",
                        key));
    if (upper && !(*upper >= 0 && *upper <= kMostReference))
      wrong(value,
            fmt::format("upper of '{}' must be a part of the reference from 0, such as 0.05, or \"none\"",
                        key));
    if (lower && *number == 0)
      wrong(value, fmt::format("'{}' must be at least 0, which it always is; let lower be \"none\"", key));
    const auto unit = list->get(3)->value_exact<std::string>();
    const std::string& own = reference.quantity.unit;
    const auto factor = unit ? conversion(*unit, own) : std::nullopt;
    if (!factor)
      wrong(value,
            fmt::format("'{}' is measured in \"{}\"; give that as its unit, or one that means the same", key,
                        own));
    const double scaled = *number * *factor;
    if (lower) reference.threshold.least = scaled * (1 + *lower);
    if (upper) reference.threshold.most = scaled * (1 + *upper);
  }

  /// Nothing for "none".
  std::optional<double> limit(const toml::node& value, const std::string& key, std::string_view which) const {
    if (value.value_exact<std::string_view>() == "none") return std::nullopt;
    const auto number = value.is_number() ? value.value<double>() : std::nullopt;
    if (!number || !std::isfinite(*number))
      wrong(value,
            fmt::format("{} of '{}' must be a part of the reference, such as 0.05, or \"none\"", which, key));
    return number;
  }

  static std::string type_of(const toml::node& value) {
    return value.is_number()  ? "a number"
           : value.is_table() ? "a table"
           : value.is_array() ? "a list"
                              : "no text";
  }

  static constexpr std::string_view kOf = " of ";

  const std::string& file_;
  std::span<const Check* const> known_;
  std::vector<std::string> names_;
  Specification specification_;
};

}  // namespace

bool Reference::is_about(const Judged& judged) const {
  return judged.check == check && judged.quantity.name == quantity.name &&
         (size_bytes == 0 || size_bytes == judged.size_bytes) &&
         (subject.empty() || subject == judged.subject);
}

std::optional<Threshold> Specification::of(const Judged& judged) const {
  const auto rank = [](const Reference& one) { return std::pair(!one.subject.empty(), one.size_bytes > 0); };
  const Reference* nearest = nullptr;
  for (const Reference& one : references)
    if (one.is_about(judged) && (nearest == nullptr || rank(one) > rank(*nearest))) nearest = &one;
  return nearest == nullptr ? std::nullopt : std::optional(nearest->threshold);
}

std::optional<Bytes> Specification::size_of(std::string_view check) const {
  std::optional<Bytes> size;
  for (const Reference& one : references) {
    if (one.check != check || one.size_bytes == 0) continue;
    if (size && size->value != one.size_bytes) return std::nullopt;
    size = Bytes{one.size_bytes};
  }
  return size;
}

std::vector<CheckRow> Specification::unmet(std::span<const CheckRow> rows) const {
  std::vector<CheckRow> unmet;
  for (const Reference& reference : references) {
    std::vector<std::string> measured;
    bool met = false;
    for (const CheckRow& row : rows) {
      if (row.check != reference.check || row.quantity != reference.quantity.name || !row.value) continue;
      met |= reference.is_about({row.check, reference.quantity, row.size_bytes, row.subject});
      std::string name = row.size_bytes > 0 ? fmt::format("@{}", to_text(Bytes{row.size_bytes})) : "";
      if (!reference.subject.empty()) name += fmt::format(" of {}", row.subject);
      if (std::ranges::find(measured, name) == measured.end()) measured.push_back(std::move(name));
    }
    if (met || measured.empty()) continue;
    constexpr std::size_t kMost = 4;
    const bool more = measured.size() > kMost;
    measured.resize(std::min(measured.size(), kMost));
    CheckRow& row = unmet.emplace_back();
    row.check = reference.check;
    row.subject = reference.key;
    row.threshold_source = reference.threshold.source;
    row.why =
        fmt::format("{} has a reference for this, and it was not measured.", reference.threshold.source);
    row.remedy = fmt::format("Correct the reference; measured were {}{}{}.", reference.quantity.name,
                             fmt::join(measured, ", " + reference.quantity.name), more ? ", …" : "");
  }
  return unmet;
}

Specification parse_spec(std::string_view text, const std::string& file,
                         std::span<const Check* const> known) {
  return Reader(file, known).read(text);
}

Specification read_spec(const std::string& path, std::span<const Check* const> known) {
  return parse_spec(read_text_file(path), path, known);
}

}  // namespace polyring
