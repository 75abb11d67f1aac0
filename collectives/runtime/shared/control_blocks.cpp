#include "collectives/runtime/shared/control_blocks.hpp"

#include <fmt/format.h>

#include <cstring>
#include <new>
#include <type_traits>

#include "base/error.hpp"
#include "base/random_token.hpp"
#include "collectives/runtime/shared/memory.hpp"

namespace polyring {
namespace {

/// What each rank tells the others when they come together.
struct Introduction {
  SegmentName control;
  std::uint64_t token = 0;
};
static_assert(
    std::has_unique_object_representations_v<Introduction>);  // it is sent, without bytes that nobody has set

std::vector<std::byte> bytes_of(const Introduction& introduction) {
  std::vector<std::byte> bytes(sizeof introduction);
  std::memcpy(bytes.data(), &introduction, sizeof introduction);
  return bytes;
}

/// Throws Error(ExitCode::not_available) also where there is no memory for the blocks that messages will
/// need: that is better known before any message goes this way.
std::unique_ptr<ControlBlocks> make_own(std::size_t ranks) {
  const Segment tried(kSlab);
  auto controls = std::make_unique<ControlBlocks>(
      ControlBlocks{Segment(ControlBlock::bytes(ranks), ControlBlock::inboxes_at(ranks)), {}, {}});
  ControlBlock* control = new (controls->own.address()) ControlBlock;
  for (std::size_t word = 0; word < ControlBlock::words(ranks); ++word)
    new (&control->writers(word)) ControlBlock::Word{0};
  control->token = random_token();
  return controls;
}

}  // namespace

std::unique_ptr<ControlBlocks> exchange_control_blocks(const Bootstrap& bootstrap,
                                                       const std::vector<Rank>& members, std::string& why) {
  const Rank rank = bootstrap.rank();
  why.clear();
  Introduction introduction;
  std::unique_ptr<ControlBlocks> controls;
  try {
    controls = make_own(members.size());
    const auto* control = reinterpret_cast<const ControlBlock*>(controls->own.address());
    introduction = {controls->own.name(), control->token};
  } catch (const Error& error) {
    why = fmt::format("rank {} cannot share memory: {}", rank, error.what());
  }
  const auto introductions = bootstrap.allgather(bytes_of(introduction));
  for (const Rank member : members) {
    if (!controls) break;
    Introduction other;
    std::memcpy(&other, introductions[static_cast<std::size_t>(member)].data(), sizeof other);
    if (other.control.address == nullptr) {  // why, it says itself
      controls.reset();
      break;
    }
    try {
      controls->mappings.emplace_back(other.control);
      controls->all.push_back(reinterpret_cast<ControlBlock*>(controls->mappings.back().address()));
      if (controls->all.back()->token != other.token) {
        throw Error(ExitCode::not_available, "it is in another process namespace");
      }
    } catch (const Error& error) {
      why = fmt::format("rank {} cannot reach rank {}'s memory: {}", rank, member, error.what());
      controls.reset();
    }
  }
  for (const std::vector<std::byte>& reason : bootstrap.allgather(std::as_bytes(std::span(why)))) {
    if (reason.empty()) continue;
    why.assign(reinterpret_cast<const char*>(reason.data()), reason.size());
    return nullptr;
  }
  return controls;
}

}  // namespace polyring
