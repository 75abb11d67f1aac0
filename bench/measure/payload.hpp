// Test payloads: what each rank puts in, chosen so that the right result is known exactly and any lost,
// doubled or misplaced contribution shows.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "bench/measure/special_values.hpp"
#include "collectives/schedule/element.hpp"
#include "collectives/schedule/schedule.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

/// What ranks put in.
///
/// whole: small whole numbers. Sums, products and averages are exact in every kind, in whatever order they
/// are reduced.
///
/// special: special_values(), of each element at two ranks. All pairs of values meet within a period. Other
/// ranks put in what changes no sum (zeros of one sign), only the sign of a product (1 or −1), and no minimum
/// or maximum (the value of the second of the two). The order in which they are reduced changes no result.
enum class PayloadValues { whole, special };

/// "whole" and "special". Throws a usage Error that lists the names.
std::string_view to_text(PayloadValues values);
PayloadValues parse_payload_values(std::string_view text);
std::vector<std::string> payload_values_names();

/// When a result is right. `bits`: as kernels.hpp says, to the bit. `value`: what any library's reduction
/// owes, since MPI says nothing of NaNs and of the sign of zeros. A NaN is as good as another NaN, −0 as +0,
/// and of operands with a NaN among them any is a right minimum and maximum.
enum class Match { bits, value };

/// Which output is expected.
struct Expected {
  Collective collective = Collective::allreduce;
  Rank rank = 0;
  Count count = 0;  // of the longer of a rank's two buffers

  Count block(int ranks) const { return count / ranks; }
};

/// Values repeat every kPeriod elements, a prime, so that a slice at a wrong offset is almost never right by
/// chance.
class Payload {
 public:
  static constexpr Count kPeriod = 1009;

  Payload(ElementKind kind, ReduceOp op, int ranks, PayloadValues values = PayloadValues::whole);

  /// Writes `count` elements of this rank's input, from its element `first` on.
  void fill(Rank rank, std::byte* data, Count count, Count first = 0) const;
  /// Writes the whole input of the rank. Where the values would repeat from block to block, since kPeriod
  /// divides a block, each block begins with another of them.
  void fill(const Expected& of, std::byte* data) const;

  /// How many of `count` elements are not the result of all ranks' inputs from element `first` on.
  Count wrong(const std::byte* data, Count count, Match match = Match::bits, Count first = 0) const;
  /// How many are not what this rank put in from its element `first` on.
  Count wrong_copies(Rank of, const std::byte* data, Count count, Count first) const;

  /// How many of `count` elements of a rank's output, from its element `first` on, are wrong.
  Count wrong(const Expected& expected, const std::byte* data, Count count, Match match, Count first) const;

 private:
  ElementBits input(Rank rank, Count index) const;
  ElementBits whole(Rank rank, Count index) const;
  ElementBits special(Rank rank, Count index) const;
  ElementBits filler(Rank rank, Count index) const;
  void gather_inputs(Count index, std::vector<ElementBits>& inputs) const;
  bool has_value(Count index, ElementBits got) const;

  Count begin_of(const Expected& of, Count block) const;
  Count count_wrong(const std::byte* data, Count count, Count first, const std::byte* expected,
                    const std::function<bool(Count index, ElementBits got)>& is_right) const;

  ElementKind kind_;
  ReduceOp op_;
  int ranks_;
  std::vector<ElementBits> special_;  // empty: whole numbers
  std::vector<std::byte> expected_;   // kPeriod elements
};

}  // namespace polyring
