// Collectives for the tests of GPUs, and what the host makes of them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "bench/measure/payload.hpp"
#include "collectives/runtime/executor.hpp"
#include "collectives/runtime/transports/threads.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "tests/collectives/sweep.hpp"

namespace polyring::testing {

struct Case {
  Plan plan;
  CollectiveOf what;
};

inline std::string to_text(const Case& test) {
  return fmt::format("{} by {} of {} {}, {}", to_text(test.what.collective), to_text(test.plan),
                     test.what.count, to_text(test.what.kind), to_text(test.what.op));
}

/// Which of the cases this process tries: five take all.
inline std::size_t seed() {
  const char* const text = std::getenv("POLYRING_SOFTWARE_GPU_SEED");
  return text == nullptr ? 0 : std::strtoul(text, nullptr, 10);
}

/// At most 16 chunks where the plan has any: each is a kernel or more at every rank, and ranks of a software
/// GPU share cores.
inline Plan in_fewer_chunks(Plan plan, Count count, ElementKind kind) {
  constexpr Count kMost = 16;
  if (plan.chunk.value > 0)
    plan.chunk.value = std::max(plan.chunk.value, bytes_of(count / kMost, kind).value);
  return plan;
}

/// Which cases of the whole product this process tries: the first, and how many there are from one to the
/// next.
struct CaseShare {
  std::size_t first = 0;
  std::size_t of = 1;
};

/// POLYRING_SOFTWARE_GPU_CASES=3/1000; for scripts/soak. Without it, few cases are tried.
inline std::optional<CaseShare> case_share() {
  const char* const text = std::getenv("POLYRING_SOFTWARE_GPU_CASES");
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  CaseShare share;
  share.first = std::strtoul(text, &end, 10);
  share.of = *end == '/' ? std::strtoul(end + 1, &end, 10) : 0;
  if (*end != '\0' || share.first >= share.of)
    usage_error("POLYRING_SOFTWARE_GPU_CASES must be as in 3/1000, not '{}'", text);
  return share;
}

/// Of all plans with all kinds, operations, collectives and sizes.
inline std::vector<Case> share_of_product(int ranks, const CaseShare& share) {
  std::vector<Case> cases;
  std::size_t turn = 0;
  const auto add = [&](const Plan& plan, const CollectiveOf& what) {
    if (turn++ % share.of == share.first) cases.push_back({plan, what});
  };
  std::vector<Count> counts = awkward_counts(ranks);
  counts.push_back(3 * Payload::kPeriod + 1);
  for (const Algorithm& algorithm : algorithms()) {
    for (const ElementKind kind : kElementKinds) {
      for (const Plan& plan : plans_of(algorithm, ranks, size_of(kind))) {
        for (const ReduceOp op : kReduceOps) {
          for (const Count count : counts)
            add(in_fewer_chunks(plan, count, kind), {Collective::allreduce, count, kind, op});
          for (const Collective collective : block_collectives_of(plan)) {
            for (const Count block : awkward_blocks()) add(plan, {collective, block * ranks, kind, op});
          }
        }
      }
    }
  }
  fmt::print("{} of {} cases for {} ranks\n", cases.size(), turn, ranks);
  return cases;
}

/// All kinds with each algorithm, and with all seeds all operations with each of these. The numbers of ranks,
/// the plans and the sizes take turns.
inline std::vector<Case> cases_for(int ranks, int most_ranks) {
  if (const auto share = case_share()) return share_of_product(ranks, *share);
  std::vector<Case> cases;
  std::size_t turn = 0;
  const auto known = algorithms();
  for (std::size_t a = 0; a < known.size(); ++a) {
    for (std::size_t k = 0; k < std::size(kElementKinds); ++k) {
      for (std::size_t o = 0; o < std::size(kReduceOps); ++o, ++turn) {
        if (index(ranks - 1) != (a + k + o) % index(most_ranks) || (a + k + o) % 5 != seed() % 5) continue;
        const ElementKind kind = kElementKinds[k];
        const std::vector<Plan> plans = plans_of(known[a], ranks, size_of(kind));
        std::vector<Count> counts = awkward_counts(ranks);
        counts.push_back(3 * Payload::kPeriod + 1);
        const Plan& plan = plans[turn % plans.size()];
        const Count count = counts[turn % counts.size()];
        cases.push_back(
            {in_fewer_chunks(plan, count, kind), {Collective::allreduce, count, kind, kReduceOps[o]}});
        for (const Collective collective : block_collectives_of(plan)) {
          const std::vector<Count> blocks = awkward_blocks();
          cases.push_back({plan, {collective, blocks[turn % blocks.size()] * ranks, kind, kReduceOps[o]}});
        }
      }
    }
  }
  return cases;
}

inline std::size_t bytes(Count count, ElementKind kind) { return bytes_of(count, kind).value; }

/// Special values on all ranks, whose order must not matter where it is that of the plan.
inline std::vector<std::byte> input_of(const Case& test, Rank rank, int ranks) {
  const Payload payload(test.what.kind, test.what.op, ranks, PayloadValues::special);
  std::vector<std::byte> input(
      bytes(input_count(test.what.collective, ranks, test.what.count), test.what.kind));
  payload.fill({test.what.collective, rank, test.what.count}, input.data());
  return input;
}

/// What the host makes of it, by rank.
inline std::vector<std::vector<std::byte>> on_host(const Case& test, int ranks) {
  std::vector<std::vector<std::byte>> outputs(index(ranks));
  run_ranks(ranks, [&](ThreadTransport& transport) {
    const std::vector<std::byte> input = input_of(test, transport.rank(), ranks);
    std::vector<std::byte>& output = outputs[index(transport.rank())];
    output.resize(bytes(output_count(test.what.collective, ranks, test.what.count), test.what.kind));
    make_executor(test.plan, test.what, transport)->run(input.data(), output.data());
  });
  return outputs;
}

}  // namespace polyring::testing
