// Timers: which of many things happens next. Each has one time at most, which may be set anew.
//
// A heap of four children a node, with the place of each in it: a rate that changes moves an entry by little,
// where a queue of events would fill with those that no longer count.
#pragma once

#include <cstddef>
#include <vector>

namespace polyring {

class Timers {
 public:
  explicit Timers(std::size_t number) : places_(number, kNowhere) {}

  bool empty() const { return heap_.empty(); }
  double next() const { return heap_.front().time; }
  /// Of one that is set.
  double time(int id) const { return heap_[places_[static_cast<std::size_t>(id)]].time; }

  void set(int id, double time) {
    const std::size_t place = places_[static_cast<std::size_t>(id)];
    if (place == kNowhere) {
      heap_.push_back({time, id});
      rise(heap_.size() - 1, {time, id});
    } else if (time < heap_[place].time) {
      rise(place, {time, id});
    } else {
      sink(place, {time, id});
    }
  }

  /// The next one, which is no longer set.
  int pop() {
    const int id = heap_.front().id;
    places_[static_cast<std::size_t>(id)] = kNowhere;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(0, last);
    return id;
  }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  static constexpr std::size_t kChildren = 4;
  struct Entry {
    double time;
    int id;
  };

  void put(std::size_t place, Entry entry) {
    heap_[place] = entry;
    places_[static_cast<std::size_t>(entry.id)] = place;
  }

  void rise(std::size_t place, Entry entry) {
    while (place > 0) {
      const std::size_t parent = (place - 1) / kChildren;
      if (heap_[parent].time <= entry.time) break;
      put(place, heap_[parent]);
      place = parent;
    }
    put(place, entry);
  }

  void sink(std::size_t place, Entry entry) {
    for (std::size_t child = kChildren * place + 1; child < heap_.size(); child = kChildren * place + 1) {
      std::size_t least = child;
      for (std::size_t other = child + 1; other < heap_.size() && other < child + kChildren; ++other) {
        if (heap_[other].time < heap_[least].time) least = other;
      }
      if (entry.time <= heap_[least].time) break;
      put(place, heap_[least]);
      place = least;
    }
    put(place, entry);
  }

  std::vector<Entry> heap_;
  std::vector<std::size_t> places_;
};

}  // namespace polyring
