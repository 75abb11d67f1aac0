#include "tests/collectives/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <utility>

#include "base/error.hpp"
#include "collectives/runtime/transports/shared.hpp"

namespace polyring::testing {
namespace {

int host_of(Placement placement, Rank rank, int ranks) {
  switch (placement) {
    case Placement::one_host:
      return 0;
    case Placement::halves:
      return rank < (ranks + 1) / 2 ? 0 : 1;
    case Placement::all_but_one:
      return rank < ranks - 1 ? 0 : 1;
    case Placement::one_and_all:
      return rank < 1 ? 0 : 1;
    case Placement::in_turn:
      return rank % 2;
  }
  return 0;
}

}  // namespace

std::string Fabric::name() const {
  constexpr const char* kPlacements[] = {"one_host", "halves", "all_but_one", "one_and_all", "in_turn"};
  switch (kind) {
    case Kind::threads:
      return "threads";
    case Kind::shared:
      return fmt::format("shared{}{}", pieces ? "_pieces" : "", streaming ? "_streaming" : "");
    case Kind::composed:
      return fmt::format("composed_{}", kPlacements[static_cast<int>(placement)]);
    case Kind::tcp:
      return fmt::format("tcp{}", pieces ? "_asking" : "");
    case Kind::mpi:
      return fmt::format("mpi{}", pieces ? "_pieces" : "");
  }
  return "";
}

std::unique_ptr<Transport> make_near(const Fabric& fabric, const Bootstrap& bootstrap, WaitRules rules) {
  const Rank rank = bootstrap.rank();
  const int ranks = bootstrap.size();
  std::vector<Rank> members;
  for (Rank other = 0; other < ranks; ++other) {
    if (host_of(fabric.placement, other, ranks) == host_of(fabric.placement, rank, ranks)) {
      members.push_back(other);
    }
  }
  std::string why;
  SharedOptions options;
  if (fabric.streaming) options.streaming = Bytes{1};
  if (fabric.pieces) options.piece = options.part = Bytes{kShortPiece};
  std::unique_ptr<Transport> transport =
      make_shared_transport(bootstrap, members, std::move(rules), why, options);
  if (!transport) throw Error(ExitCode::not_available, why);
  return transport;
}

std::vector<std::vector<std::byte>> gather(Transport& transport, std::span<const std::byte> own) {
  std::vector<std::vector<std::byte>> all(static_cast<std::size_t>(transport.size()));
  std::vector<Ticket> done;
  std::size_t started = 0;
  for (Rank rank = 0; rank < transport.size(); ++rank) {
    std::vector<std::byte>& bytes = all[static_cast<std::size_t>(rank)];
    bytes.assign(own.begin(), own.end());
    if (rank == transport.rank()) continue;
    transport.receive(rank, 0, bytes, started++);
    transport.send(rank, 0, own, started++);
  }
  while (done.size() < started) transport.wait(done);
  return all;
}

std::vector<Rank> waited_for(std::string sentence, Rank own) {
  sentence.resize(
      std::min(sentence.find(';'), sentence.size()));  // what follows is of those that do not answer
  static const std::regex kRanks("rank (\\d+(, \\d+)*)");
  static const std::regex kNumber("\\d+");
  std::vector<Rank> ranks;
  for (std::sregex_iterator names(sentence.begin(), sentence.end(), kRanks), end; names != end; ++names) {
    const std::string list = (*names)[1];
    for (std::sregex_iterator number(list.begin(), list.end(), kNumber); number != end; ++number) {
      const Rank rank = std::stoi(number->str());
      if (rank != own) ranks.push_back(rank);
    }
  }
  return ranks;
}

}  // namespace polyring::testing
