#include "tests/software_gpu/conformance/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

extern char** environ;

namespace polyring::software_gpu {
namespace {

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

}  // namespace

Child::Child(const std::string& role, std::string_view input) {
  int down[2], up[2];
  if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) give_up("pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, down[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, up[1], STDOUT_FILENO);
  std::string program = "/proc/self/exe", option = "--child", role_text = role;
  char* const arguments[] = {program.data(), option.data(), role_text.data(), nullptr};
  if (posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments, environ) != 0)
    give_up("posix_spawn");
  posix_spawn_file_actions_destroy(&actions);
  close(down[0]);
  close(up[1]);
  to_child_ = fdopen(down[1], "w");
  from_child_ = fdopen(up[0], "r");
  std::fwrite(input.data(), 1, input.size(), to_child_);
  std::fflush(to_child_);
}

Child::~Child() {
  std::fclose(to_child_);
  std::fclose(from_child_);
  waitpid(process_, nullptr, 0);
}

std::string Child::line() {
  char text[500];
  if (std::fgets(text, sizeof text, from_child_) == nullptr) return "ended";
  std::string found(text);
  if (!found.empty() && found.back() == '\n') found.pop_back();
  return found;
}

void Child::go_on() {
  std::fputc('\n', to_child_);
  std::fflush(to_child_);
}

void Child::kill() { ::kill(process_, SIGKILL); }

}  // namespace polyring::software_gpu
