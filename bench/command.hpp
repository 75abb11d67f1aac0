// The subcommands, each in a file of its own under commands/. add_…() declares its options; main() runs the
// action of the one that was chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "topology/error.hpp"

namespace polyring {

struct CommandLine {
  CLI::App& app;
  std::string text;                  // as typed, for the record
  std::function<ExitCode()> action;  // of the subcommand that was chosen
  bool collective = false;           // whether every rank runs it, or rank 0 alone
};

void add_probe(CommandLine& line);
void add_plan(CommandLine& line);
void add_verify(CommandLine& line);
void add_allreduce(CommandLine& line);
void add_train(CommandLine& line);
void add_scale(CommandLine& line);
void add_calibrate(CommandLine& line);
void add_tune(CommandLine& line);
void add_launch(CommandLine& line);
void add_report(CommandLine& line);

/// A subcommand with an example in its help.
CLI::App& add_subcommand(CommandLine& line, const std::string& name, const std::string& summary,
                         const std::string& example, std::function<ExitCode()> action,
                         bool collective = false);

}  // namespace polyring
