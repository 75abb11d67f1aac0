// Scripts with which shells complete polyring's command line, made from the command line itself.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace polyring {

/// `shell` is bash, zsh or fish. Completes subcommands, options, names that options know, and files.
std::string completion_script(CLI::App& app, std::string_view shell);

}  // namespace polyring
