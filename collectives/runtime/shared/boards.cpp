#include "collectives/runtime/shared/boards.hpp"

#include <fmt/format.h>

#include <cstring>
#include <new>

#include "base/error.hpp"
#include "base/random_token.hpp"
#include "collectives/runtime/shared/memory.hpp"

namespace polyring {
namespace {

/// What each rank tells the others when they come together.
struct Introduction {
  SegmentName board;
  std::uint64_t token = 0;
};

std::vector<std::byte> bytes_of(const Introduction& introduction) {
  std::vector<std::byte> bytes(sizeof introduction);
  std::memcpy(bytes.data(), &introduction, sizeof introduction);
  return bytes;
}

/// Throws Error(ExitCode::not_available) also where there is no memory for the blocks that messages will
/// need: that is better known before any message goes this way.
std::unique_ptr<Boards> make_board(std::size_t ranks) {
  const Segment tried(kSlab);
  auto boards =
      std::make_unique<Boards>(Boards{Segment(Board::bytes(ranks), Board::inboxes_at(ranks)), {}, {}});
  Board* board = new (boards->own.address()) Board;
  for (std::size_t word = 0; word < Board::words(ranks); ++word) new (&board->writers(word)) Board::Word{0};
  board->token = random_token();
  return boards;
}

}  // namespace

std::unique_ptr<Boards> exchange_boards(const Bootstrap& bootstrap, const std::vector<Rank>& members,
                                        std::string& why) {
  const Rank rank = bootstrap.rank();
  why.clear();
  Introduction introduction;
  std::unique_ptr<Boards> boards;
  try {
    boards = make_board(members.size());
    const auto* board = reinterpret_cast<const Board*>(boards->own.address());
    introduction = {boards->own.name(), board->token};
  } catch (const Error& error) {
    why = fmt::format("rank {} cannot share memory: {}", rank, error.what());
  }
  const auto introductions = bootstrap.allgather(bytes_of(introduction));
  for (const Rank member : members) {
    if (!boards) break;
    Introduction other;
    std::memcpy(&other, introductions[static_cast<std::size_t>(member)].data(), sizeof other);
    if (other.board.address == nullptr) {  // why, it says itself
      boards.reset();
      break;
    }
    try {
      boards->mappings.emplace_back(other.board);
      boards->all.push_back(reinterpret_cast<Board*>(boards->mappings.back().address()));
      if (boards->all.back()->token != other.token) {
        throw Error(ExitCode::not_available, "it is in another process namespace");
      }
    } catch (const Error& error) {
      why = fmt::format("rank {} cannot reach rank {}'s memory: {}", rank, member, error.what());
      boards.reset();
    }
  }
  for (const std::vector<std::byte>& reason : bootstrap.allgather(std::as_bytes(std::span(why)))) {
    if (reason.empty()) continue;
    why.assign(reinterpret_cast<const char*>(reason.data()), reason.size());
    return nullptr;
  }
  return boards;
}

}  // namespace polyring
