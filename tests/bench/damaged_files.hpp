// Files that people and machines have damaged: what a parser says of them.
#pragma once

#include <gmock/gmock.h>

#include <string>

#include "tests/models/refusal.hpp"

namespace polyring {

/// The sentence with which `parse(text, name of the file)` refuses the text. It names the file.
std::string refusal_of(const auto& parse, const std::string& text) {
  const std::string sentence = refusal([&] { parse(text, "a file"); });
  EXPECT_THAT(sentence, ::testing::HasSubstr("'a file'")) << text;
  return sentence;
}

/// The text with `to` in the place of the first `from`.
inline std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

}  // namespace polyring
