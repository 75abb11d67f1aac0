// Program: one rank's part of one stream, expanded and made ready to execute.
//
// Out of place, an element lives in the input until it is first combined or received, and in the output from
// then on. The program knows for each operand where that is, so that no copy of the whole payload is ever
// made. Partial results of another kind than the payload, such as float32 for float16, have an area of their
// own; only complete results go to the output. Messages of a reduction are of that kind too, except in the
// first step, which carries inputs only.
//
// A reduce-scatter's output has room for one block, so its partial results stay in a work area. An all-to-all
// moves all that a rank has from one area to another.
//
// Where the ranks of a group reach each other's memory, a step of theirs is an exchange instead of messages;
// and a reduction in one step with the spread that follows it is one exchange: each result is written
// straight to all who need it.
//
// Each step has its round: both ends of a message, and all ranks of an exchange, have the same one. A stage's
// steps have one each, and so have copies behind an all-to-all's stage and those at the end. Several steps
// share one where an exchange is made block by block.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "collectives/schedule/schedule.hpp"

namespace polyring {

/// Chunks of each lane that are in flight at once.
inline constexpr int kDefaultWindow = 4;
/// Throws a usage Error for less than one.
void check_window(int window);

/// Where a rank's elements are. Partial results are of their own kind, all else of the payload's.
enum class Area { input, output, partial, work };

struct Program {
  struct Copy {
    Slice slice;
    Area from;
    Area to;
    bool operator==(const Copy&) const = default;
  };
  struct Send {
    Rank peer;
    Slice slice;
    Area from;
    bool operator==(const Send&) const = default;
  };
  struct Receive {
    Rank peer;
    Slice slice;
    Combine combine;
    Area to;        // of a copy
    Count staging;  // for a combination: where in the staging area the message goes, in elements
    bool partial;   // of the partial results' kind
    bool operator==(const Receive&) const = default;
  };
  /// A slice becomes the combination of what was received for it and this rank's own.
  struct Fold {
    static constexpr std::size_t kOwn = ~std::size_t{0};
    Slice slice;
    std::vector<std::size_t> operands;  // receives of the step and kOwn, in the order of the ranks
    Area own;
    Area result;
    bool last;  // no more will be added to it: an avg divides here
    bool operator==(const Fold&) const = default;
  };
  struct Partner {
    Rank peer;
    Slice gives;
    Area gives_from;
    Slice takes;
    bool read;
    bool write;
    bool operator==(const Partner&) const = default;
  };
  struct Exchange {
    std::vector<Partner> partners;  // ascending by rank
    Slice own;
    Area own_at;
    Area result;
    bool keeps;  // the result is for this rank, too
    bool last;
    bool operator==(const Exchange&) const = default;
  };
  struct Step {
    std::vector<Copy> copies;  // to be made first; one onto itself is none
    std::vector<Slice> widen;  // to be converted from the input to the partial results first
    std::optional<Exchange> exchange;
    std::vector<Send> sends;
    std::vector<Receive> receives;
    std::vector<Fold> folds;
    bool sends_first;  // what is sent is overwritten by a fold
    int round;         // its number in the lane, the same on all ranks that take part in it
    bool operator==(const Step&) const = default;
  };

  std::vector<Step> steps;
  int rounds = 0;     // of the lane
  Count staging = 0;  // elements
  bool has_partials = false;
  bool has_work = false;

  bool operator==(const Program&) const = default;
};

/// Slices are relative to the stream's first element: streams of one lane and one size share a program. Where
/// a payload has blocks, each slice of the input and of the output lies in one of them.
/// `reaches` says of other ranks whether this one reaches their memory, and they its. Throws a usage Error
/// for stages in switches.
Program compile(const Schedule& schedule, Stream stream, Rank rank, const std::function<bool(Rank)>& reaches,
                Partials partials = Partials::in_output);

/// Of all ranks; `reach` says of any two whether they reach each other's memory, and empty: none do.
std::vector<Program> compile_all(const Schedule& schedule, Stream stream,
                                 const std::function<bool(Rank, Rank)>& reach, Partials partials);

}  // namespace polyring
