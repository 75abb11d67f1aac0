// polyring completion: a script that a shell reads.
#include <memory>

#include "bench/cli/output.hpp"
#include "bench/commands/command.hpp"

namespace polyring {

void add_completion(CommandLine& line) {
  auto shell = std::make_shared<std::string>();
  line.add_subcommand("completion", "Print a script that completes command lines in bash, zsh or fish",
                      "polyring completion bash > ~/.local/share/bash-completion/completions/polyring",
                      [&line, shell] {
                        print_result(line.completion(*shell));
                        return ExitCode::ok;
                      })
      .add_option("shell", *shell, "bash, zsh or fish")
      .required()
      .type_name("SHELL")
      .names({"shell", {"bash", "zsh", "fish"}});
}

}  // namespace polyring
