// The text of published_training.json; the build makes its source.
#pragma once

#include <string_view>

namespace polyring {

extern const std::string_view kPublishedTrainingJson;

}  // namespace polyring
