// Another process of the same program, for questions that two processes answer.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace polyring::software_gpu {

class Child {
 public:
  /// Starts `answer_of_child(role)` in a new process, and gives it these bytes.
  Child(const std::string& role, std::string_view input);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// The next line that it prints; "ended" where it prints no more.
  std::string line();
  /// Lets it go on where it waits for that.
  void go_on();
  void kill();

 private:
  pid_t process_ = -1;
  std::FILE* to_child_ = nullptr;
  std::FILE* from_child_ = nullptr;
};

}  // namespace polyring::software_gpu
