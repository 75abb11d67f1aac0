// What is known of Gloo's algorithms without Gloo.
#include <limits>

#include "base/error.hpp"
#include "bench/contenders/gloo.hpp"

namespace polyring {

const std::vector<std::string>& gloo_algorithms() {
  static const std::vector<std::string> names{"ring", "bcube", "ring-chunked", "halving-doubling"};
  return names;
}

void check_gloo(const std::string& algorithm, ElementKind kind, Count largest) {
  const bool counts_in_int = algorithm == "ring-chunked" || algorithm == "halving-doubling";
  if (!counts_in_int || largest <= std::numeric_limits<int>::max() / size_of(kind)) return;
  usage_error("gloo:{} counts bytes up to 2 GiB only, not {} elements of {}; leave it out", algorithm,
              largest, to_text(kind));
}

}  // namespace polyring
