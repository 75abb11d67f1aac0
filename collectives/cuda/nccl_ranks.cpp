#include "collectives/cuda/nccl_ranks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "base/boot_id.hpp"
#include "base/error.hpp"
#include "base/host_name.hpp"
#include "base/text.hpp"
#include "collectives/cuda/nccl_calls.hpp"

namespace polyring {
namespace {

constexpr int kSharesGpus = 23000;  // NCCL 2.30: NCCL_MULTI_RANK_GPU_ENABLE

/// What a rank says of itself. Texts are cut to what fits.
struct Card {
  ncclUniqueId id;  // of rank 0
  int version;      // 0: this rank has no NCCL that works
  int device;
  bool shares_gpus;
  char host[256];
  char machine[64];
  char bus_id[32];
  char uuid[64];
  char trouble[768];
};

template <std::size_t N>
void write(char (&to)[N], std::string_view text) {
  std::copy_n(text.data(), std::min(text.size(), N - 1), to);
}

bool may_share_gpus() {
  const char* const value = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return value != nullptr && std::strtol(value, nullptr, 0) != 0;
}

Card own_card(const NcclLibrary& library, Rank rank, const NcclDevice& device) {
  Card card{};
  card.version = library.version_code();
  card.device = device.index;
  card.shares_gpus = may_share_gpus();
  write(card.host, own_host_name());
  write(card.machine, boot_id(""));
  write(card.bus_id, device.bus_id);
  write(card.uuid, device.uuid);
  write(card.trouble, library.why_not());
  if (library.found() && rank == 0) {
    const ncclResult_t result = library.calls().ncclGetUniqueId(&card.id);
    if (result != ncclSuccess) {
      card.version = 0;
      write(card.trouble,
            fmt::format("ncclGetUniqueId of NCCL {} failed: {}; see NCCL's log with NCCL_DEBUG=WARN",
                        library.version(), library.calls().ncclGetErrorString(result)));
    }
  }
  return card;
}

std::vector<Card> exchange(const Bootstrap& bootstrap, const Card& own) {
  std::vector<Card> cards;
  for (const std::vector<std::byte>& bytes : bootstrap.allgather(std::as_bytes(std::span(&own, 1)))) {
    std::memcpy(&cards.emplace_back(), bytes.data(), sizeof(Card));
  }
  return cards;
}

std::string name(std::span<const Card> cards, std::size_t rank) {
  return fmt::format("rank {} on {}", rank, cards[rank].host);
}

void check_presence(std::span<const Card> cards) {
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    if (cards[rank].version != 0) continue;
    throw AgreedError(ExitCode::not_available, fmt::format("{}: {}", name(cards, rank), cards[rank].trouble));
  }
}

/// Names a rank of each version.
void check_versions(std::span<const Card> cards) {
  std::map<int, std::vector<std::size_t>> ranks;  // of each version
  for (std::size_t rank = 0; rank < cards.size(); ++rank) ranks[cards[rank].version].push_back(rank);
  if (ranks.size() < 2) return;
  std::vector<std::string> versions;
  for (const auto& [version, these] : ranks) {
    std::string& text =
        versions.emplace_back(fmt::format("{} at {}", nccl_version_text(version), name(cards, these[0])));
    if (these.size() > 1) text += fmt::format(" and {} more", counted(std::ssize(these) - 1, "rank"));
  }
  throw AgreedError(
      ExitCode::nccl,
      fmt::format("the ranks have unequal versions of NCCL: {}; install one version on all hosts, "
                  "or set POLYRING_NCCL",
                  fmt::join(versions, ", ")));
}

/// As NCCL compares GPUs: by bus id up to 2.29, and later by UUID, which parts of a GPU have of their own.
bool have_one_gpu(const Card& a, const Card& b) {
  if (std::strcmp(a.host, b.host) != 0 || std::strcmp(a.machine, b.machine) != 0) return false;
  const bool by_uuid = a.version >= kSharesGpus && a.uuid[0] != 0 && b.uuid[0] != 0;
  return by_uuid ? std::strcmp(a.uuid, b.uuid) == 0 : std::strcmp(a.bus_id, b.bus_id) == 0;
}

void check_devices(std::span<const Card> cards) {
  const bool permitted =
      cards[0].version >= kSharesGpus &&
      std::all_of(cards.begin(), cards.end(), [](const Card& card) { return card.shares_gpus; });
  if (permitted) return;
  for (std::size_t rank = 1; rank < cards.size(); ++rank) {
    for (std::size_t other = 0; other < rank; ++other) {
      if (!have_one_gpu(cards[rank], cards[other])) continue;
      const std::string remedy =
          cards[0].version >= kSharesGpus
              ? "give each rank a GPU, or set NCCL_MULTI_RANK_GPU_ENABLE=1 for all ranks"
              : "give each rank a GPU, or use NCCL 2.30 or later with NCCL_MULTI_RANK_GPU_ENABLE=1";
      throw AgreedError(ExitCode::not_available,
                        fmt::format("NCCL {} refuses ranks {} and {} on {}, since both use GPU {} ({}); {}",
                                    nccl_version_text(cards[0].version), other, rank, cards[rank].host,
                                    cards[rank].device, cards[rank].bus_id, remedy));
    }
  }
}

}  // namespace

ncclUniqueId agree_on_nccl(const NcclLibrary& library, const Bootstrap& bootstrap, const NcclDevice& device) {
  const std::vector<Card> cards = exchange(bootstrap, own_card(library, bootstrap.rank(), device));
  check_presence(cards);
  check_versions(cards);
  check_devices(cards);
  return cards[0].id;
}

}  // namespace polyring
