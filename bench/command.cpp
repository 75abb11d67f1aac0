#include "bench/command.hpp"

#include <utility>

namespace polyring {

CLI::App& add_subcommand(CommandLine& line, const std::string& name, const std::string& summary,
                         const std::string& example, std::function<ExitCode()> action, bool collective) {
  CLI::App* app = line.app.add_subcommand(name, summary);
  app->footer("Example:\n  " + example);
  app->callback([&line, action = std::move(action), collective] {
    line.action = action;
    line.collective = collective;
  });
  return *app;
}

}  // namespace polyring
