// Two square matrices whose product is known exactly, without a GPU: small whole numbers of both signs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace polyring::cuda {

/// The matrices lie as cuBLAS reads them, column behind column: left and right of float16, the product of
/// float32. Its elements, and all sums on the way to them, in any order, are below 2^24: float32 has them
/// exactly. The left one's rows and the right one's columns repeat after a prime number of them, so a few
/// dot products make all of the product, and what is read from a wrong block of a matrix still differs. As
/// real data do, the numbers change many bits from one to the next: a GPU takes more power for these.
class KnownProduct {
 public:
  /// kMostProductSide at most.
  explicit KnownProduct(int side);

  enum class Matrix { left, right, product };
  std::size_t column_bytes(Matrix matrix) const;
  /// Writes so many columns, from the one of this number on.
  void write_columns(Matrix matrix, int first, int columns, std::byte* to) const;

 private:
  std::size_t side_;
  std::vector<std::uint16_t> left_;   // of each column the rows that repeat
  std::vector<std::uint16_t> right_;  // the columns that repeat
  std::vector<float> product_;        // likewise
};

}  // namespace polyring::cuda
