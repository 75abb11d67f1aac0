// What the parameterised tests of models share: the catalogue's names, and test names made from text.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "models/model.hpp"

namespace polyring {

inline std::vector<std::string> catalogue_names() {
  std::vector<std::string> names;
  for (const ModelInfo& info : model_catalogue()) names.emplace_back(info.name);
  return names;
}

/// GoogleTest allows letters, digits and underscores only.
inline std::string as_test_name(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return text;
}

inline std::string name_of_parameter(const testing::TestParamInfo<std::string>& info) {
  return as_test_name(info.param);
}

}  // namespace polyring
