// What others measured, and the fixed floors that they set: published_rates.json, which is built into the
// program.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace polyring {

/// Where a figure was read.
struct PublishedSource {
  std::string where;  // an address or a document, and what in it
  std::string date;   // of the figure, or of the copy that was read; empty when unknown
};

enum class PublishedState {
  healthy,
  stated,  // by an author for machines in general
  faulty,  // far below what the machine should reach; no part of an expectation
};

/// Figures of one machine with one implementation, the smaller payloads first.
struct PublishedRate {
  std::string machine;         // figures of one machine have one name
  std::string link;            // "NVLink 3", "InfiniBand HDR": what limits
  std::string implementation;  // "ring", "tree", "in-switch", "in-switch tree", "mpi", "copy", …
  PublishedState state = PublishedState::healthy;
  int hosts = 1;
  int ranks = 0;
  Bandwidth rate;  // what these links carry that the implementation can use together, as bus bandwidth
  std::map<Bytes, Bandwidth> busbw;  // by payload
  bool saturated = false;            // the smallest payload is as good as a large one
  std::string software;
  std::string note{};
  PublishedSource source;
};

/// A floor below which others take a machine for faulty.
struct PublishedFloor {
  std::string who;
  std::string gpu;  // in the model's name
  int gpus = 0;     // of a host
  int hosts = 1;
  Bytes size;
  Bandwidth busbw;
  std::string note{};
  PublishedSource source;
};

struct PublishedRates {
  std::vector<PublishedRate> rates;
  std::vector<PublishedFloor> floors;
};

/// Throws an internal Error that names the row and the fault: one without a source, a machine or figures, or
/// of an unknown state.
PublishedRates parse_published_rates(std::string_view json);

/// Those of the program.
const PublishedRates& published_rates();

}  // namespace polyring
