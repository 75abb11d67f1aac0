// Stores past the caches become visible in no order before a store fence. Here they stay invisible until
// then: the processor's instructions are replaced, in a copy of the kernels of this file's own.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>

namespace {

struct LateStore {
  std::byte* to;
  std::vector<std::byte> bytes;
};

std::vector<LateStore> late;
std::size_t streamed = 0;  // stores, since the last look

template <typename Value>
void store_late(void* to, Value value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  late.push_back({static_cast<std::byte*>(to), {bytes, bytes + sizeof value}});
  ++streamed;
}

[[maybe_unused]] void show_late_stores() {
  for (const LateStore& store : late) std::memcpy(store.to, store.bytes.data(), store.bytes.size());
  late.clear();
}

}  // namespace

#define _mm_stream_si64(to, value) store_late(to, value)
#define _mm_stream_si128(to, value) store_late(to, value)
#define _mm256_stream_si256(to, value) store_late(to, value)
#define _mm512_stream_si512(to, value) store_late(to, value)
#define _mm_sfence() show_late_stores()

#include "collectives/runtime/kernels/reduce.hpp"

namespace polyring {
namespace {

constexpr std::size_t kMost = 5003;

/// Two inputs into so many outputs, each that many bytes after the beginning of a line.
void expect_visible(const Reduction& reduction, std::size_t count, std::vector<std::size_t> offsets) {
  const std::vector<std::byte> ones(count * 8, std::byte{1});
  const std::byte* const inputs[] = {ones.data(), ones.data()};
  const std::size_t bytes = count * static_cast<std::size_t>(size_of(reduction.result));
  std::vector<std::byte> expected(bytes);
  std::byte* const plain[] = {expected.data()};
  reduce({reduction, plain, 1, inputs, 2, count, Stores::cached});
  std::vector<std::vector<std::byte>> buffers(offsets.size(), std::vector<std::byte>(bytes + 2 * kLine));
  std::vector<std::byte*> outputs;
  for (std::size_t k = 0; k < offsets.size(); ++k) {
    outputs.push_back(buffers[k].data() + to_next_line(buffers[k].data()) + offsets[k]);
  }
  streamed = 0;
  reduce({reduction, outputs.data(), outputs.size(), inputs, 2, count, Stores::streaming});
  EXPECT_EQ(late.size(), 0U) << "there is no fence";
  EXPECT_TRUE(streamed > 0 || count < kMost) << "nothing went past the caches";
  for (const std::byte* output : outputs) {
    EXPECT_EQ(std::memcmp(output, expected.data(), bytes), 0) << count << " elements";
  }
}

TEST(Streaming, AResultIsVisibleWhenTheKernelReturns) {
  const Reduction reductions[] = {
      {ElementKind::float32},
      {ElementKind::bfloat16, ReduceOp::sum, 1, ElementKind::bfloat16},
      {ElementKind::float32, ReduceOp::avg, 3, ElementKind::float16},
      {ElementKind::int64, ReduceOp::max, 1, ElementKind::int64},
  };
  for (const Reduction& reduction : reductions) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{16}, std::size_t{1024}, kMost}) {
      expect_visible(reduction, count, {0});
      expect_visible(reduction, count, {8, 8});
      expect_visible(reduction, count, {0, 16, 3});
    }
  }
}

TEST(Streaming, ACopyIsVisibleWhenTheKernelReturns) {
  const std::vector<std::byte> from(kMost, std::byte{7});
  for (const unsigned offset : {0U, 1U, 63U}) {
    std::vector<std::byte> to(kMost + kLine);
    streamed = 0;
    copy(to.data() + offset, from.data(), from.size(), Stores::streaming);
    EXPECT_GT(streamed, 0U);
    EXPECT_EQ(late.size(), 0U) << "there is no fence";
    EXPECT_EQ(std::memcmp(to.data() + offset, from.data(), from.size()), 0);
  }
}

}  // namespace
}  // namespace polyring
#endif
