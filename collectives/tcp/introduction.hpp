// What each rank tells the others, over the allgather, before they connect to each other.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "collectives/schedule.hpp"

namespace polyring {

/// Random, and known to the ranks alone.
using Token = std::array<std::uint64_t, 2>;

struct Introduction {
  Token token{};
  std::array<char, 64> host{};             // its name, for messages
  std::array<unsigned char, 4> address{};  // IPv4
  std::uint32_t port = 0;                  // 0: it does not listen
};

/// The first words on a connection, from both sides. Whoever says anything else is a stranger.
struct Greeting {
  std::uint64_t rank = 0;
  Token own{};
  Token other{};
  bool operator==(const Greeting&) const = default;
};

/// All are sent as they lie in memory, as payloads are: the hosts of a job are of one kind.
template <typename Plain>
std::vector<std::byte> bytes_of(const Plain& plain) {
  std::vector<std::byte> bytes(sizeof plain);
  std::memcpy(bytes.data(), &plain, sizeof plain);
  return bytes;
}

}  // namespace polyring
