#include "bench/predict/scaled_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace polyring {
namespace {

std::vector<std::string> notes_of(const ScaledMachine& scaled) {
  std::vector<std::string> notes = notes_of(scaled.request, scaled.rows);
  const auto add = [&](const std::vector<std::string>& more) {
    notes.insert(notes.end(), more.begin(), more.end());
  };
  add(scaled.of_algorithms);
  add(notes_of_rows(scaled.rows));
  add(scaled.best.notes);
  add(scaled.of_strategies);
  return notes;
}

}  // namespace

std::vector<std::string> notes_of(const std::vector<ScaledMachine>& machines) {
  std::vector<std::vector<std::string>> of_each;
  for (const ScaledMachine& scaled : machines) of_each.push_back(notes_of(scaled));
  if (machines.size() == 1) return of_each.front();
  const auto of_all = [&](const std::string& note) {
    return std::all_of(of_each.begin(), of_each.end(), [&](const auto& notes) {
      return std::find(notes.begin(), notes.end(), note) != notes.end();
    });
  };
  std::vector<std::string> all;
  std::copy_if(of_each.front().begin(), of_each.front().end(), std::back_inserter(all), of_all);
  for (std::size_t i = 0; i < machines.size(); ++i) {
    for (const std::string& note : of_each[i])
      if (!of_all(note)) all.push_back(fmt::format("{}: {}", machines[i].request.scaling.name, note));
  }
  return all;
}

}  // namespace polyring
