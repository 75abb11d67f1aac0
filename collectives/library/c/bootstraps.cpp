#include "collectives/library/c/bootstraps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/library/c/unique_id.hpp"
#include "collectives/runtime/bootstraps/tcp.hpp"

namespace polyring::library {

void check_place(int rank, int ranks) {
  if (ranks < 1 || rank < 0 || rank >= ranks)
    usage_error("there is no rank {} of {}; ranks count from 0", rank, ranks);
}

/// Rank 0's reason is everybody's, where it cannot listen.
std::unique_ptr<Bootstrap> over_tcp(const Bootstrap& first, Seconds timeout) {
  polyring_unique_id id{};
  std::string why;
  try {
    if (first.rank() == 0) id = make_unique_id();
  } catch (const Error& error) {
    why = error.what();
  }
  const std::span<const std::byte> said =
      why.empty() ? std::as_bytes(std::span(&id, 1)) : std::as_bytes(std::span(why));
  const std::vector<std::byte> heard =
      first.allgather(first.rank() == 0 ? said : std::span<const std::byte>{}).front();
  if (heard.size() != sizeof id)
    throw Error(ExitCode::not_available,
                std::string(reinterpret_cast<const char*>(heard.data()), heard.size()));
  std::memcpy(&id, heard.data(), sizeof id);
  return std::make_unique<TcpBootstrap>(group_of(id, first.rank(), first.size(), timeout));
}

GroupBootstrap::GroupBootstrap(const polyring_group& group, int rank, int ranks)
    : group_(group), rank_(rank), ranks_(ranks) {
  check_place(rank, ranks);
  if (group.allgather == nullptr) usage_error("the group has no allgather; set the function");
}

std::vector<std::byte> GroupBootstrap::gather(std::span<const std::byte> own) const {
  std::vector<std::byte> all(own.size() * index(ranks_));
  if (const int code = group_.allgather(group_.context, own.data(), all.data(), own.size()); code != 0)
    throw Error(ExitCode::mpi,
                fmt::format("the group's allgather of {} bytes a rank returned {}", own.size(), code));
  return all;
}

/// The program's allgather takes equally many bytes of each: the ranks' numbers of bytes first, then what is
/// padded.
std::vector<std::vector<std::byte>> GroupBootstrap::allgather(std::span<const std::byte> own) const {
  const std::uint64_t bytes = own.size();
  const std::vector<std::byte> packed = gather(std::as_bytes(std::span(&bytes, 1)));
  std::vector<std::uint64_t> sizes(index(ranks_));
  std::memcpy(sizes.data(), packed.data(), packed.size());
  const std::uint64_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::byte> padded(own.begin(), own.end());
  padded.resize(longest);
  const std::vector<std::byte> all = longest == 0 ? std::vector<std::byte>{} : gather(padded);
  std::vector<std::vector<std::byte>> everyones;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank * longest);
    everyones.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(sizes[rank]));
  }
  return everyones;
}

StoreBootstrap::StoreBootstrap(const polyring_store& store, int rank, int ranks, Seconds timeout)
    : store_(store), rank_(rank), ranks_(ranks), timeout_(timeout) {
  check_place(rank, ranks);
  if (store.set == nullptr || store.get == nullptr)
    usage_error("the store has no set or no get; give both functions");
  if (store.prefix == nullptr || store.prefix[0] == '\0')
    usage_error("the store has no prefix; give one that no other communicator has");
  prefix_ = store.prefix;
}

std::string StoreBootstrap::key(Rank rank) const { return fmt::format("{}/{}/{}", prefix_, round_, rank); }

std::vector<std::byte> StoreBootstrap::get(Rank rank) const {
  std::vector<std::byte> value(4096);
  std::size_t bytes = 0;
  for (bool whole = false; !whole;) {
    if (const int code =
            store_.get(store_.context, key(rank).c_str(), value.data(), value.size(), &bytes, timeout_.value);
        code != 0) {
      throw Error(
          ExitCode::timeout,
          fmt::format("the store's get of rank {}'s key {} returned {} within {}; see whether that rank runs",
                      rank, key(rank), code, to_text(timeout_)));
    }
    whole = bytes <= value.size();
    value.resize(bytes);
  }
  return value;
}

std::vector<std::vector<std::byte>> StoreBootstrap::allgather(std::span<const std::byte> own) const {
  if (const int code = store_.set(store_.context, key(rank_).c_str(), own.data(), own.size()); code != 0)
    throw Error(ExitCode::mpi,
                fmt::format("the store's set of {} bytes at {} returned {}", own.size(), key(rank_), code));
  std::vector<std::vector<std::byte>> everyones;
  for (Rank rank = 0; rank < ranks_; ++rank)
    everyones.push_back(rank == rank_ ? std::vector<std::byte>(own.begin(), own.end()) : get(rank));
  ++round_;
  return everyones;
}

}  // namespace polyring::library
