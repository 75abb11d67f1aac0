#include "bench/cli/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "base/text.hpp"

namespace polyring {
namespace {

/// An option, or words without one.
struct Argument {
  std::vector<std::string> options;  // all its names, with their dashes
  std::string help;
  std::string type;  // as --help shows it; empty for a flag
  std::vector<std::string> values{};
  bool files = false;
  bool list = false;  // with commas
};

struct Command {
  std::string name;
  std::string help;
  std::vector<Argument> arguments;
};

/// The first clause: there is little room beside a name.
std::string brief(const std::string& help) {
  std::size_t end = help.size();
  for (const char* mark : {": ", "; ", ". ", " ("}) end = std::min(end, help.find(mark));
  return help.substr(0, end);
}

Argument argument(CLI::Option& option) {
  Argument made{{}, brief(option.get_description()), option.get_expected_max() ? option.get_type_name() : ""};
  for (const std::string& letter : option.get_snames()) made.options.push_back("-" + letter);
  for (const std::string& name : option.get_lnames()) made.options.push_back("--" + name);
  made.values = named_values(option);
  made.list = option.get_delimiter() != '\0';
  for (const char* type : {"FILE", "DIR", "PATH", "MACHINE", "PROGRAM"})
    made.files = made.files || made.type.starts_with(type);
  return made;
}

std::vector<Command> commands_of(CLI::App& app) {
  std::vector<Command> commands;
  Argument names{{}, "subcommand", "SUBCOMMAND"};
  for (CLI::App* subcommand : app.get_subcommands(nullptr)) {
    Command& made = commands.emplace_back(Command{subcommand->get_name(), subcommand->get_description(), {}});
    for (CLI::Option* option : subcommand->get_options()) made.arguments.push_back(argument(*option));
    names.values.push_back(made.name);
  }
  commands.push_back({"help", "Show the help of a subcommand", {names}});
  return commands;
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

/// Inside single quotes, with backslashes before these characters.
std::string escaped(std::string_view text, std::string_view characters, std::string_view quote) {
  std::string made;
  for (const char character : text) {
    if (characters.find(character) != characters.npos) made += '\\';
    character == '\'' ? made += quote : made += character;
  }
  return made;
}

std::string bash(const std::vector<Command>& commands) {
  std::string first = "--help --version";
  std::string cases;
  for (const Command& command : commands) {
    first += " " + command.name;
    std::string words;
    std::string files;
    for (const Argument& argument : command.arguments) {
      words += " " + joined(argument.options.empty() ? argument.values : argument.options);
      if (argument.options.empty() && argument.files) files = " files=yes";
      if (argument.type.empty()) continue;
      for (const std::string& option : argument.options) {
        cases += fmt::format("    '{} {}') words='{}' files={} ;;\n", command.name, option,
                             joined(argument.values),
                             !argument.files           ? ""
                             : argument.values.empty() ? "yes"
                                                       : "too");
      }
    }
    cases += fmt::format("    '{} '*) words='{}'{} ;;\n", command.name, words, files);
  }
  return R"(_polyring() {
  local IFS=$' \t\n' typed words= files= command=
  read -ra typed <<<"${COMP_LINE:0:COMP_POINT}." # the dot stands for a last word that is still empty
  local last=$((${#typed[@]} - 1))
  local word=${typed[last]%.} option=${typed[last - 1]}
  ((last == 1)) || command=${typed[1]}
  if [[ $word == --*=* ]]; then option=${word%%=*} word=${word#*=}; fi
  [[ " ${typed[*]:0:last} " != *' -- '* ]] || command=-- option=
  case "$command $option" in
    ' '*) words=')" +
         first + "' ;;\n    '-- ') files=yes ;;\n" + cases + R"(  esac
  COMPREPLY=()
  if [[ -n $files && $word != -* ]]; then
    compopt -o default # files
    [[ $files == too ]] || return
  fi
  local of_list=${word##*,} colon=${word%"${word##*:}"}
  mapfile -t COMPREPLY < <(compgen -P "${word%"$of_list"}" -W "$words" -- "$of_list")
  COMPREPLY=("${COMPREPLY[@]#"$colon"}") # for bash, a word begins after a colon
}
complete -F _polyring polyring
)";
}

std::string zsh(const std::vector<Command>& commands) {
  const auto quoted = [](std::string_view text) { return escaped(text, "[]:\\", R"('\'')"); };
  std::string names;
  std::string cases;
  for (const Command& command : commands) {
    names += fmt::format("    '{}:{}'\n", command.name, quoted(command.help));
    cases += fmt::format("    {}) _arguments", command.name);
    for (const Argument& argument : command.arguments) {
      const std::string values = quoted(joined(argument.values));
      const bool both = argument.files && !argument.values.empty();
      const std::string action = both             ? fmt::format("{{compadd {}; _files}}", values)
                                 : argument.files ? "_files"
                                 : values.empty() ? " "
                                 : argument.list  ? "_sequence compadd - " + values
                                                  : "(" + values + ")";
      const std::string taken =
          argument.type.empty() ? "" : fmt::format(":{}:{}", quoted(argument.type), action);
      if (argument.options.empty()) cases += fmt::format(" \\\n      '*{}'", taken);
      for (const std::string& option : argument.options) {
        const char* equals = !taken.empty() && option.starts_with("--") ? "=" : "";
        cases += fmt::format(" \\\n      '*{}{}[{}]{}'", option, equals, quoted(argument.help), taken);
      }
    }
    cases += " ;;\n";
  }
  return "#compdef polyring\n_polyring() {\n  local -a names=(\n" + names + R"(  )
  if ((CURRENT == 2)); then
    _describe subcommand names
    return
  fi
  shift words
  ((CURRENT--))
  case $words[1] in
)" + cases +
         R"(  esac
}
if [[ $funcstack[1] == _polyring ]]; then _polyring "$@"; else compdef _polyring polyring; fi
)";
}

std::string fish(const std::vector<Command>& commands) {
  const auto quoted = [](std::string_view text) { return escaped(text, "\\", R"(\')"); };
  std::string lines = "complete -c polyring -n __fish_use_subcommand -f\n";
  for (const Command& command : commands) {
    lines += fmt::format("complete -c polyring -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                         quoted(command.help));
    for (const Argument& argument : command.arguments) {
      lines += fmt::format("complete -c polyring -n '__fish_seen_subcommand_from {}'", command.name);
      for (const std::string& option : argument.options)
        lines += option.starts_with("--") ? " -l " + option.substr(2) : " -s " + option.substr(1);
      if (!argument.type.empty()) lines += argument.files ? " -rF" : argument.options.empty() ? " -f" : " -x";
      if (!argument.values.empty()) lines += fmt::format(" -a '{}'", joined(argument.values));
      lines += fmt::format(" -d '{}'\n", quoted(argument.help));
    }
  }
  return lines;
}

}  // namespace

std::vector<std::string> named_values(CLI::Option& option) {
  std::vector<std::string> values;
  try {
    values = split(option.get_validator(0)->get_name(), ' ');
    if (values == std::vector<std::string>{"number"}) values.clear();
  } catch (const CLI::OptionNotFound&) {  // takes anything
  }
  std::erase_if(values, [](const auto& name) { return name.empty() || name.find("NAME") != name.npos; });
  return values;
}

std::string completion_script(CLI::App& app, std::string_view shell) {
  const std::vector<Command> commands = commands_of(app);
  return shell == "bash" ? bash(commands) : shell == "zsh" ? zsh(commands) : fish(commands);
}

}  // namespace polyring
