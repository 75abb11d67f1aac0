// Program: one rank's part of one stream, expanded and made ready to execute.
//
// Out of place, an element lives in the input until it is first combined or received, and in the output from
// then on. The program knows for each operand where that is, so that no copy of the whole payload is ever
// made.
#pragma once

#include <vector>

#include "collectives/schedule.hpp"

namespace polyring {

struct Program {
  struct Send {
    Rank peer;
    Slice slice;
    bool from_input;
  };
  struct Receive {
    Rank peer;
    Slice slice;
    Combine combine;
    bool left_in_input;  // for a combination: where its left operand is
    Count staging;       // for a combination: where in the staging area the message goes, in elements
  };
  struct Step {
    std::vector<Slice> fill;  // to be copied from the input to the output first
    std::vector<Send> sends;
    std::vector<Receive> receives;  // to be combined in this order, which makes results reproducible
    Slice divide;                   // to be divided afterwards, for avg
  };

  std::vector<Step> steps;
  Count staging = 0;  // elements
};

/// Slices are relative to the stream's first element: streams of one lane and one size share a program.
Program compile(const Schedule& schedule, Stream stream, Rank rank);

}  // namespace polyring
