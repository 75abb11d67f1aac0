// The program's command line: its subcommands and their options. CLI11 parses it; only command_line.cpp
// and completion.cpp include its header, which takes seconds to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace polyring {

/// What an option may be given, in whatever case.
struct Names {
  std::string what;                // "algorithm"
  std::vector<std::string> known;  // as errors list them
  /// Known too, but not listed. One that ends with a colon, as "mpi:", stands for all that begin so; whoever
  /// has the option's value knows these.
  std::vector<std::string> unlisted{};
  /// Words for which it is true name files, and are left as they are. Nothing: no word does.
  bool (*is_file)(std::string_view) = nullptr;
};

/// An option of a subcommand; copies stand for the same option. Each function returns it for the next one.
/// Options are named with their dashes, as in "--dims".
class Option {
 public:
  Option(CLI::App& app, CLI::Option& option) : app_(&app), option_(&option) {}

  /// What --help shows for the value, such as FILE.
  Option type_name(const std::string& name) const;
  /// --help shows the value that the variable has now.
  Option show_default() const;
  /// --help shows this text as the default.
  Option show_default(const std::string& text) const;
  Option append_description(const std::string& text) const;

  Option required() const;
  /// Of whole numbers, and not_negative() too.
  Option range(std::int64_t least, std::int64_t most) const;
  Option not_negative() const;
  /// Each value is one of `names`, which it becomes; else a usage Error lists them.
  Option names(Names names) const;
  Option needs(const std::string& other) const;
  Option excludes(std::initializer_list<const char*> others) const;
  /// Only these and --help may be given too. Options that are added later may be given.
  Option excludes_all_but(std::initializer_list<const char*> others) const;

  // For lists. By default an option takes all words that follow it.
  Option separated_by(char delimiter) const;
  Option one_value() const;            // in all
  Option one_value_each_time() const;  // the option may be repeated

 private:
  CLI::App* app_;
  CLI::Option* option_;
};

/// A subcommand while its options are declared; copies stand for the same one.
class Subcommand {
 public:
  explicit Subcommand(CLI::App& app) : app_(&app) {}

  /// `names` is "-b,--minbytes", or has no dashes for words without an option. `value` must live until the
  /// action has run. The types of values are listed in command_line.cpp.
  template <class Value>
  Option add_option(const std::string& names, Value& value, const std::string& description) const;
  Option add_flag(const std::string& names, bool& value, const std::string& description) const;
  /// One that was added before.
  Option option(const std::string& name) const;

 private:
  CLI::App* app_;
};

class CommandLine {
 public:
  /// `version` says what --version shows, when it is asked for. `text`: the words as typed, for the record.
  CommandLine(const std::string& summary, std::function<std::string()> version, const std::string& footer,
              std::string text);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  /// `collective`: every rank runs the action, not rank 0 alone.
  Subcommand add_subcommand(const std::string& name, const std::string& summary, const std::string& example,
                            std::function<ExitCode()> action, bool collective = false);
  /// Fills the options' variables. Returns the text that --help, --version or `help SUBCOMMAND` asked for, if
  /// they were given. Throws a usage Error for words that fit no option, with the nearest that there is.
  std::optional<std::string> parse(int argc, char** argv);

  /// What --help says.
  std::string help() const;
  /// A script with which `shell` (bash, zsh or fish) completes the command line.
  std::string completion(const std::string& shell) const;
  const std::string& text() const { return text_; }
  // Of the subcommand that was chosen.
  const std::function<ExitCode()>& action() const { return action_; }  // empty: none was
  bool collective() const { return collective_; }
  bool given(const std::string& option) const;
  /// The same with this value.
  bool given(const std::string& option, const std::string& value) const;

 private:
  [[noreturn]] void refuse_subcommand(const std::string& word) const;
  [[noreturn]] void refuse_unexpected() const;

  std::unique_ptr<CLI::App> app_;
  std::string text_;
  const CLI::App* chosen_ = nullptr;
  std::function<ExitCode()> action_;
  bool collective_ = false;
};

}  // namespace polyring
