#include "collectives/schedule/program_text.hpp"

#include <fmt/format.h>

#include <iterator>

namespace polyring {
namespace {

std::string text_of(Slice slice) { return fmt::format("[{}, {})", slice.offset, slice.end()); }

class Writer {
 public:
  void write(const Program::Step& step) {
    for (const Program::Copy& copy : step.copies)
      line("copy {} of the {} into the {}", text_of(copy.slice), to_text(copy.from), to_text(copy.to));
    for (const Slice slice : step.widen) line("convert {} of the input into partial results", text_of(slice));
    if (step.exchange) write(*step.exchange);
    for (const Program::Receive& receive : step.receives) write(receive);
    for (const Program::Send& send : step.sends)
      line("send {} of the {} to rank {}", text_of(send.slice), to_text(send.from), send.peer);
    if (step.sends_first) line("wait until all is sent");
    for (const Program::Fold& fold : step.folds) write(fold, step);
  }

  std::string text;

 private:
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text += "  ";
    fmt::format_to(std::back_inserter(text), format, std::forward<Arguments>(arguments)...);
    text += "\n";
  }

  void write(const Program::Receive& receive) {
    if (receive.combine == Combine::copy) {
      line("receive {} from rank {} into the {}", text_of(receive.slice), receive.peer, to_text(receive.to));
    } else {
      line("receive {} from rank {}, {}to combine, at {}", text_of(receive.slice), receive.peer,
           receive.partial ? "partial results, " : "", receive.staging);
    }
  }

  void write(const Program::Fold& fold, const Program::Step& step) {
    std::string operands;
    for (const std::size_t operand : fold.operands) {
      operands += operands.empty() ? "" : ", ";
      operands += operand == Program::Fold::kOwn ? fmt::format("own of the {}", to_text(fold.own))
                                                 : fmt::format("rank {}'s", step.receives[operand].peer);
    }
    line("combine {}: {}; into the {}{}", text_of(fold.slice), operands, to_text(fold.result),
         fold.last ? ", complete" : "");
  }

  void write(const Program::Exchange& exchange) {
    for (const Program::Partner& partner : exchange.partners) {
      std::string what;
      const auto add = [&](const std::string& more) { what += (what.empty() ? "" : ", ") + more; };
      if (!partner.gives.empty())
        add(fmt::format("lets it read {} of the {}", text_of(partner.gives), to_text(partner.gives_from)));
      if (!partner.takes.empty()) add(fmt::format("lets it write {} of the output", text_of(partner.takes)));
      if (partner.read) add("reads");
      if (partner.write) add("writes");
      line("exchange with rank {}: {}", partner.peer, what);
    }
    if (exchange.own.empty()) return;
    line("with {} of the {}{}{}", text_of(exchange.own), to_text(exchange.own_at),
         exchange.keeps ? fmt::format(", into the {}", to_text(exchange.result)) : "",
         exchange.last ? ", complete" : "");
  }
};

}  // namespace

std::string_view to_text(Area area) {
  switch (area) {
    case Area::input:
      return "input";
    case Area::output:
      return "output";
    case Area::partial:
      return "partial results";
    case Area::work:
      return "work area";
  }
  return "";
}

std::string to_text(const Program& program) {
  Writer writer;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    writer.text += fmt::format("step {}\n", i);
    writer.write(program.steps[i]);
  }
  return writer.text;
}

}  // namespace polyring
