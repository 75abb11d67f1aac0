#include "reports/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "topology/error.hpp"

namespace polyring {
namespace {

/// Files rather than pipes: a program that fills one pipe while the other is read would hang.
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File temporary_file() {
  File file(std::tmpfile(), &std::fclose);
  if (!file) usage_error("cannot make a temporary file: {}; free some room in /tmp", std::strerror(errno));
  return file;
}

std::string content(std::FILE* file) {
  std::string text;
  std::array<char, 4096> block;
  std::rewind(file);
  while (const std::size_t read = std::fread(block.data(), 1, block.size(), file))
    text.append(block.data(), read);
  return text;
}

/// Owns the redirections of a program to be started.
class Redirections {
 public:
  Redirections(std::FILE* output, std::FILE* errors) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, ::fileno(output), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, ::fileno(errors), STDERR_FILENO);
  }
  Redirections(const Redirections&) = delete;
  Redirections& operator=(const Redirections&) = delete;
  ~Redirections() { ::posix_spawn_file_actions_destroy(&actions_); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

ProcessResult run_process(std::span<const std::string> arguments) {
  const File output = temporary_file();
  const File errors = temporary_file();
  const Redirections redirections(output.get(), errors.get());
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, argv[0], redirections.get(), nullptr, argv.data(), environ);
  if (failure != 0)
    return {127, "", fmt::format("cannot run '{}': {}", arguments[0], std::strerror(failure))};
  const int exit_code = wait_for(child);
  return {exit_code, content(output.get()), content(errors.get())};
}

}  // namespace polyring
