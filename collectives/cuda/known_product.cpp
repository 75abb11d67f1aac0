#include "collectives/cuda/known_product.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <random>

#include "base/index.hpp"
#include "collectives/cuda/gpu.hpp"

namespace polyring::cuda {
namespace {

constexpr std::size_t kPeriod = 61;
constexpr int kLargest = 45;
static_assert(kLargest * kLargest * kMostProductSide < 1 << 24);

/// A whole number of at most 11 bits, as float16.
std::uint16_t half_of(int value) {
  constexpr unsigned kBias = 15;
  constexpr unsigned kFraction = 10;
  const auto size = static_cast<unsigned>(std::abs(value));
  const auto exponent = static_cast<unsigned>(std::bit_width(size)) - 1;
  const unsigned fraction = (size << (kFraction - exponent)) & ((1U << kFraction) - 1);
  return static_cast<std::uint16_t>((value < 0 ? 0x8000U : 0U) | ((kBias + exponent) << kFraction) |
                                    fraction);
}

/// Each element of the column is one of `repeated`, which come again and again.
template <typename Element>
void write_repeated(const Element* repeated, std::size_t elements, std::byte* to) {
  for (std::size_t at = 0; at < elements; at += kPeriod)
    std::memcpy(to + at * sizeof(Element), repeated, std::min(kPeriod, elements - at) * sizeof(Element));
}

}  // namespace

KnownProduct::KnownProduct(int side) : side_(index(side)), product_(kPeriod * kPeriod) {
  assert(side <= kMostProductSide);
  std::minstd_rand random(1);  // NOLINT(cert-msc51-cpp): the same on all hosts
  const auto numbers = [&] {
    std::vector<int> made(kPeriod * side_);
    for (int& number : made) {
      const auto bits = static_cast<std::uint32_t>(random()) >> 8;
      number = 1 + static_cast<int>(bits / 2 % kLargest);
      if (bits % 2 == 1) number = -number;
    }
    return made;
  };
  const std::vector<int> left = numbers();
  const std::vector<int> right = numbers();
  for (std::size_t column = 0; column < kPeriod; ++column) {
    std::vector<int> sums(kPeriod);
    for (std::size_t k = 0; k < side_; ++k)
      for (std::size_t row = 0; row < kPeriod; ++row)
        sums[row] += left[k * kPeriod + row] * right[column * side_ + k];
    std::ranges::transform(sums, product_.begin() + static_cast<std::ptrdiff_t>(column * kPeriod),
                           [](int sum) { return static_cast<float>(sum); });
  }
  std::ranges::transform(left, std::back_inserter(left_), half_of);
  std::ranges::transform(right, std::back_inserter(right_), half_of);
}

std::size_t KnownProduct::column_bytes(Matrix matrix) const {
  return side_ * (matrix == Matrix::product ? sizeof(float) : sizeof(std::uint16_t));
}

void KnownProduct::write_columns(Matrix matrix, int first, int columns, std::byte* to) const {
  for (std::size_t column = index(first); column < index(first + columns); ++column) {
    const std::size_t repeats = column % kPeriod;
    if (matrix == Matrix::left)
      write_repeated(left_.data() + column * kPeriod, side_, to);
    else if (matrix == Matrix::right)
      std::memcpy(to, right_.data() + repeats * side_, column_bytes(matrix));
    else
      write_repeated(product_.data() + repeats * kPeriod, side_, to);
    to += column_bytes(matrix);
  }
}

}  // namespace polyring::cuda
