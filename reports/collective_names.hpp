// What the names of collectives in results say.
#pragma once

#include <string_view>

namespace polyring {

/// Whether this one of kCollectives reduces; of the others every type is as good as any.
inline bool reduces(std::string_view collective) {
  return collective == "allreduce" || collective == "reduce-scatter";
}

}  // namespace polyring
