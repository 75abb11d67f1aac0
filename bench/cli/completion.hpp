// Scripts with which shells complete polyring's command line, made from the command line itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace polyring {

/// The names that Option::names() has left in the option's validator, without "mpi:NAME", which stands for
/// others; none where it takes anything.
std::vector<std::string> named_values(CLI::Option& option);

/// `shell` is bash, zsh or fish. Completes subcommands, options, names that options know, and files.
std::string completion_script(CLI::App& app, std::string_view shell);

}  // namespace polyring
