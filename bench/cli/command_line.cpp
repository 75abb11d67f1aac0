#include "bench/cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <span>
#include <sstream>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/names.hpp"
#include "bench/cli/completion.hpp"
#include "bench/cli/nccl_tests.hpp"

namespace polyring {
namespace {

/// All names of the options, with their dashes, that --help shows.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* subcommand : app.get_subcommands(nullptr)) names.push_back(subcommand->get_name());
  return names;
}

/// The check of a number by itself; a check of its range takes its place.
constexpr const char* kNumber = "number";

/// "" if all of the text is a number that fits the type, else what is wrong with it, with the remedy.
template <typename Number>
std::string why_no_number(const std::string& name, const std::string& text) {
  Number number{};
  if (CLI::detail::lexical_cast(text, number)) return {};
  return fmt::format("{} '{}' is not a {}; give one, such as {}", name, text,
                     std::is_integral_v<Number> ? "whole number" : "number",
                     std::is_integral_v<Number> ? "4" : "2.5");
}

template <typename Value>
struct NumberOf {
  using type = Value;
};
template <typename Value>
struct NumberOf<std::optional<Value>> {
  using type = Value;
};

/// Refuses text that is no number, in our words in place of CLI11's.
template <typename Value>
void check_number(CLI::Option& option) {
  using Number = typename NumberOf<Value>::type;
  if constexpr (std::is_arithmetic_v<Number>) {
    const auto check = [&option](const std::string& text) {
      const std::string wrong = why_no_number<Number>(option.get_name(), text);
      if (!wrong.empty()) throw Error(ExitCode::usage, wrong);
      return std::string();
    };
    option.check(CLI::Validator(check, "", kNumber));
  }
}

/// Options that take one value and were given several, one that was given none, and what CLI11 says of
/// others: each in a sentence with its remedy.
std::string mismatch_text(const CLI::App& app, const std::string& what) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const std::size_t given = option->results().size();
    if (option->get_expected_max() == 1 && given > 1) {
      const bool list = option->get_type_name() == "LIST";
      return fmt::format(
          "{} is given {} times; give it once{}", name, given,
          list ? ", with a list such as " + fmt::format("{}", fmt::join(option->results(), ",")) : "");
    }
  }
  const std::string name = what.substr(0, what.find(':'));
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option == nullptr) return what + "; see --help";
  return fmt::format("{} needs a value ({}); add it, or leave {} out", name, option->get_type_name(), name);
}

/// Both names of "--seed requires --jitter".
std::optional<std::pair<std::string, std::string>> around(const std::string& what, const std::string& verb) {
  const std::size_t at = what.find(verb);
  if (at == std::string::npos) return std::nullopt;
  return std::pair(what.substr(0, at), what.substr(at + verb.size()));
}

/// What is wrong with the words, and the remedy.
std::string sentence_of(const CLI::ParseError& error, const CLI::App& app, const std::string& command) {
  const std::string what = error.what();
  if (error.get_name() == "ArgumentMismatch") return mismatch_text(app, what);
  if (error.get_name() == "ExcludesError") {
    if (const auto names = around(what, " excludes "))
      return fmt::format("{} and {} exclude each other; leave one of them out", names->first, names->second);
  }
  if (error.get_name() == "RequiresError") {
    if (const auto names = around(what, " requires ")) {
      return fmt::format("{} is nothing without {}; add it, or leave {} out", names->first, names->second,
                         names->first);
    }
  }
  return fmt::format("{}; see {} --help", what, command);
}

/// "did you mean --machine dgx-h100?" of the options that take one of some names, where the word is one of
/// them; else empty.
std::string meant_option(CLI::App& app, const std::string& word) {
  for (CLI::Option* option : app.get_options()) {
    if (const auto name = known_name(word, named_values(*option)))
      return fmt::format(" did you mean {} {}?", option->get_name(), *name);
  }
  return {};
}

/// "--name" of "--name=value".
std::string_view without_value(std::string_view word) { return word.substr(0, word.find('=')); }

}  // namespace

Option Option::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

Option Option::show_default() const {
  option_->capture_default_str();
  return *this;
}

Option Option::show_default(const std::string& text) const {
  option_->default_str(text);
  return *this;
}

Option Option::append_description(const std::string& text) const {
  option_->description(option_->get_description() + text);
  return *this;
}

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::range(std::int64_t least, std::int64_t most) const {
  const auto check = [option = option_, least, most](const std::string& text) {
    std::int64_t number = 0;
    if (CLI::detail::lexical_cast(text, number) && number >= least && number <= most) return std::string();
    throw Error(ExitCode::usage, fmt::format("{} '{}' is not a whole number from {} to {}; give one that is",
                                             option->get_name(), text, least, most));
  };
  option_->get_validator(kNumber)->active(false);
  option_->check(CLI::Validator(check, CLI::Range(least, most).get_description()));
  return *this;
}

Option Option::not_negative() const {
  const auto check = [option = option_](const std::string& text) {
    std::int64_t number = 0;
    if (CLI::detail::lexical_cast(text, number) && number >= 0) return std::string();
    throw Error(ExitCode::usage, fmt::format("{} '{}' is not a whole number of 0 or more; give one that is",
                                             option->get_name(), text));
  };
  option_->get_validator(kNumber)->active(false);
  option_->check(CLI::Validator(check, CLI::NonNegativeNumber.get_description()));
  return *this;
}

Option Option::names(Names names) const {
  const std::string known = fmt::format("{}", fmt::join(names.known, " "));
  const auto canonical = [names = std::move(names)](std::string& typed) {
    if (names.is_file != nullptr && names.is_file(typed)) return std::string();
    for (const std::string& family : names.unlisted) {
      if (!family.ends_with(':') || !lower_case(typed).starts_with(family)) continue;
      typed = lower_case(typed);
      return std::string();
    }
    auto name = known_name(typed, names.known);
    if (!name) name = known_name(typed, names.unlisted);
    if (!name) throw Error(ExitCode::usage, unknown_name(names.what, typed, names.known));
    typed = *name;
    return std::string();
  };
  option_->transform(CLI::Validator(canonical, ""),
                     known);  // named_values() of completion.cpp reads its name
  return *this;
}

Option Option::needs(const std::string& other) const {
  option_->needs(app_->get_option(other));
  return *this;
}

Option Option::excludes(std::initializer_list<const char*> others) const {
  for (const char* other : others) option_->excludes(app_->get_option(other));
  return *this;
}

Option Option::excludes_all_but(std::initializer_list<const char*> others) const {
  std::vector<const CLI::Option*> allowed{option_, app_->get_help_ptr()};
  for (const char* other : others) allowed.push_back(app_->get_option(other));
  for (CLI::Option* other : app_->get_options()) {
    if (std::find(allowed.begin(), allowed.end(), other) == allowed.end()) option_->excludes(other);
  }
  return *this;
}

Option Option::separated_by(char delimiter) const {
  option_->delimiter(delimiter);
  return *this;
}

Option Option::one_value() const {
  option_->expected(1);
  return *this;
}

Option Option::one_value_each_time() const {
  option_->allow_extra_args(false);
  return *this;
}

template <class Value>
Option Subcommand::add_option(const std::string& names, Value& value, const std::string& description) const {
  CLI::Option& option = *app_->add_option(names, value, description);
  check_number<Value>(option);
  return {*app_, option};
}

#define POLYRING_OPTION_VALUE(type) \
  template Option Subcommand::add_option(const std::string&, type&, const std::string&) const
POLYRING_OPTION_VALUE(int);
POLYRING_OPTION_VALUE(std::int64_t);
POLYRING_OPTION_VALUE(std::optional<int>);
POLYRING_OPTION_VALUE(std::optional<double>);
POLYRING_OPTION_VALUE(std::string);
POLYRING_OPTION_VALUE(std::optional<std::string>);
POLYRING_OPTION_VALUE(std::filesystem::path);
POLYRING_OPTION_VALUE(std::vector<std::string>);
POLYRING_OPTION_VALUE(std::vector<std::filesystem::path>);
#undef POLYRING_OPTION_VALUE

Option Subcommand::add_flag(const std::string& names, bool& value, const std::string& description) const {
  return {*app_, *app_->add_flag(names, value, description)};
}

Option Subcommand::option(const std::string& name) const { return {*app_, *app_->get_option(name)}; }

CommandLine::CommandLine(const std::string& summary, std::function<std::string()> version,
                         const std::string& footer, std::string text)
    : app_(std::make_unique<CLI::App>(summary, "polyring")), text_(std::move(text)) {
  app_->set_version_flag("--version", std::move(version));
  app_->footer(footer);
}

CommandLine::~CommandLine() = default;

Subcommand CommandLine::add_subcommand(const std::string& name, const std::string& summary,
                                       const std::string& example, std::function<ExitCode()> action,
                                       bool collective) {
  CLI::App* app = app_->add_subcommand(name, summary);
  app->footer("Example:\n  " + example);
  app->callback([this, app, action = std::move(action), collective] {
    chosen_ = app;
    action_ = action;
    collective_ = collective;
  });
  return Subcommand(*app);
}

std::string CommandLine::help() const { return app_->help(); }

std::string CommandLine::completion(const std::string& shell) const {
  return completion_script(*app_, shell);
}

void CommandLine::refuse_subcommand(const std::string& word) const {
  usage_error("unknown subcommand '{}'{} see polyring --help", word,
              did_you_mean(word, subcommand_names(*app_)));
}

void CommandLine::refuse_unexpected() const {
  const std::vector<std::string> words = app_->remaining(true);
  const std::vector<CLI::App*> chosen = app_->get_subcommands();
  if (chosen.empty() && !words.front().starts_with('-')) refuse_subcommand(words.front());
  CLI::App& app = chosen.empty() ? *app_ : *chosen.front();
  const std::string command = chosen.empty() ? "polyring" : "polyring " + app.get_name();
  const auto option = std::ranges::find_if(words, [](const auto& word) { return word.starts_with('-'); });
  if (option == words.end()) {
    usage_error("unexpected argument{} {};{} see {} --help", words.size() == 1 ? "" : "s",
                fmt::join(words, " "), meant_option(app, words.front()), command);
  }
  const std::string_view name = without_value(*option);
  if (app.get_option_no_throw(std::string(name)) != nullptr) {
    usage_error("{} is an option of {}; write it behind these words, or see {} --help", name, command,
                command);
  }
  if (const auto of_nccl_tests = nccl_tests_option(name)) {
    usage_error("{} has no {}, which in nccl-tests means '{}'; leave it out, or see {} --help", command, name,
                *of_nccl_tests, command);
  }
  // A letter is as near to every other.
  const std::string hint = name.starts_with("--") ? did_you_mean(name, option_names(app)) : ";";
  usage_error("{} has no option {}{} see {} --help", command, name, hint, command);
}

std::optional<std::string> CommandLine::parse(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "help") {
    const std::vector<std::string> known = subcommand_names(*app_);
    if (words.size() > 1 && std::ranges::find(known, words[1]) == known.end()) refuse_subcommand(words[1]);
    std::rotate(words.begin(), words.begin() + 1, words.end());
    words.back() = "--help";
  }
  const auto asks_for_help = [](const std::string& word) { return word == "--help" || word == "-h"; };
  const bool help_wanted = std::ranges::any_of(words, asks_for_help);
  std::ranges::reverse(words);  // for CLI11 takes the last first
  try {
    app_->parse(std::move(words));
  } catch (const Error&) {
    // Values are looked at before the request for help.
    if (!help_wanted) throw;
    const std::vector<CLI::App*> chosen = app_->get_subcommands();
    return chosen.empty() ? help() : chosen.front()->help("polyring");
  } catch (const CLI::ExtrasError&) {
    refuse_unexpected();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help and --version
      std::ostringstream text;
      app_->exit(error, text, text);
      return text.str();
    }
    std::string command = "polyring";
    for (const CLI::App* sub : app_->get_subcommands()) command += " " + sub->get_name();
    const std::vector<CLI::App*> chosen = app_->get_subcommands();
    throw Error(ExitCode::usage, sentence_of(error, chosen.empty() ? *app_ : *chosen.front(), command));
  }
  return std::nullopt;
}

bool CommandLine::given(const std::string& option, const std::string& value) const {
  const CLI::Option* found = chosen_ == nullptr ? nullptr : chosen_->get_option_no_throw(option);
  return found != nullptr && std::ranges::count(found->results(), value) > 0;
}

bool CommandLine::given(const std::string& option) const {
  return chosen_ != nullptr && chosen_->count(option) > 0;
}

}  // namespace polyring
