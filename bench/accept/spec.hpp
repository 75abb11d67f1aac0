// What a site wants of its cluster: which checks, and what they must measure. A TOML file of comparisons as
// ReFrame's users write them.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/accept/check.hpp"

namespace polyring {

/// What a check must measure. See docs/acceptance.md for how a file says it.
struct Reference {
  std::string key;  // "busbw@64MiB of mpi"
  std::string check;
  Quantity quantity;
  std::uint64_t size_bytes = 0;  // 0: of every size that no other reference is about
  std::string subject{};         // empty: of every subject likewise
  Threshold threshold;

  bool is_about(const Judged& judged) const;
};

class Specification final : public GivenThresholds {
 public:
  std::vector<std::string> checks;  // empty: all
  std::string checks_source;        // "spec site.toml:1"
  std::vector<Reference> references;

  bool refers_to(std::string_view check) const {
    return std::ranges::any_of(references, [&](const Reference& one) { return one.check == check; });
  }

  /// A reference to a subject goes before all others, one to a size before one to neither.
  std::optional<Threshold> of(const Judged& judged) const override;
  std::optional<Bytes> size_of(std::string_view check) const override;

  /// Rows (missing) for references whose check has measured that quantity, but not this size or subject: they
  /// must not pass unseen.
  std::vector<CheckRow> unmet(std::span<const CheckRow> rows) const;
};

/// `known`: the checks that there are. Throws a usage Error that names file and line for text that is no
/// specification, names what there is not, or has a threshold that cannot fail.
Specification parse_spec(std::string_view text, const std::string& file, std::span<const Check* const> known);

/// The same of a file. Throws as read_text_file() does, too.
Specification read_spec(const std::string& path, std::span<const Check* const> known);

}  // namespace polyring
