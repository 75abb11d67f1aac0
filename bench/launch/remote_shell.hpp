// The program that runs a command on another host: ssh, srun inside an allocation, or one like them.
#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"

namespace polyring {

class RemoteShell {
 public:
  static RemoteShell ssh() { return {Kind::ssh, {"ssh"}}; }
  static RemoteShell srun() { return {Kind::srun, {"srun"}}; }
  /// Any that is called as `WORDS… HOST COMMAND`, and has a shell read COMMAND there.
  static RemoteShell other(std::vector<std::string> words) { return {Kind::other, std::move(words)}; }

  /// What runs a script of sh's there. `limit`: how long ssh tries to connect, in whole seconds.
  std::vector<std::string> command(const std::string& host, const std::string& script, Seconds limit) const;
  /// What one would type to try it out: "ssh node0 true".
  std::string by_hand(const std::string& host) const;

  /// Its words where it was the user who named it, so that a launcher must be told; else empty.
  std::vector<std::string> chosen() const {
    return kind_ == Kind::other ? words_ : std::vector<std::string>{};
  }

 private:
  enum class Kind { ssh, srun, other };
  RemoteShell(Kind kind, std::vector<std::string> words) : kind_(kind), words_(std::move(words)) {}
  std::vector<std::string> srun_words(const std::string& host) const;

  Kind kind_;
  std::vector<std::string> words_;
};

}  // namespace polyring
