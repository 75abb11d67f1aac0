// Progress of long work: one line on a terminal that is written over, nothing in a pipe.
#pragma once

#include <string_view>

namespace polyring {

class Progress {
 public:
  /// Quiet unless `wanted` and standard error is a terminal.
  explicit Progress(bool wanted);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool on() const { return on_; }
  void show(std::string_view what);
  void clear();

 private:
  bool shown_ = false;
  bool on_;
};

}  // namespace polyring
