// How fast the files of a data set can be read. Never writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace polyring {

struct DataFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
};

/// Less would be read again and again, and come from caches.
inline constexpr Bytes kSmallestData{4 << 20};

/// Files in the folder and those below it, some of them where there are many: those that are found in a few
/// seconds. Throws an Error that names the folder where it is none, or has too little that may be read.
std::vector<DataFile> find_data_files(const std::filesystem::path& folder);

enum class ReadOrder { sequential, random };

struct ReadRates {
  std::vector<double> GBps;  // in equal parts of the time, of all readers together
  bool direct = true;        // false: the file system refuses that, and some may have come from a cache
};

/// Several readers at a time, each a block at a time, at places that are multiples of the block. `seed` says
/// where they begin. Give each host another one: a file server answers from its cache what another host has
/// just read. Throws an Error where a file cannot be read.
ReadRates read_data(const std::vector<DataFile>& files, ReadOrder order, Bytes block, Seconds time,
                    std::uint64_t seed);

}  // namespace polyring
