// What the fuzz targets share: reading hostile text, and using what comes of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "topology/cluster.hpp"

/// The entry of every target, by libFuzzer's convention.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace polyring::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the program where a property does not hold.
inline void expect(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

/// Runs a reader, which may refuse its text with a usage Error of one line. What else it throws is a finding.
template <typename Read>
void may_refuse(Read read) {
  try {
    read();
  } catch (const Error& error) {
    const std::string_view sentence = error.what();
    expect(error.code() == ExitCode::usage, "an Error that is none of usage");
    expect(sentence.find('\n') == std::string_view::npos, "an Error of several lines");
    expect(!sentence.empty() && sentence.size() < 2000, "an Error of no reasonable length");
  }
}

/// Prints a cluster that a reader accepted in every format, and reads back those that can be read.
void use(const Cluster& cluster);

}  // namespace polyring::fuzz
