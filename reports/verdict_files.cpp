// JUnit XML and Prometheus' text of what `polyring accept` found.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <pugixml.hpp>
#include <sstream>

#include "base/printable.hpp"
#include "reports/verdicts.hpp"

namespace polyring {
namespace {

int count(std::span<const CheckRow> rows, std::initializer_list<Verdict> verdicts) {
  return static_cast<int>(std::ranges::count_if(
      rows, [&](const CheckRow& row) { return std::ranges::find(verdicts, row.verdict) != verdicts.end(); }));
}

void add_case(pugi::xml_node suite, const CheckRow& row) {
  pugi::xml_node test = suite.append_child("testcase");
  test.append_attribute("classname") = row.check.c_str();
  test.append_attribute("name") = printable_line(row.subject.empty() ? row.check : row.subject).c_str();
  test.append_attribute("time") = fmt::format("{:.3f}", row.seconds).c_str();
  if (row.verdict == Verdict::pass || row.verdict == Verdict::shown) {
    test.append_child("system-out").text() = printable(row.why).c_str();
    return;
  }
  const char* name = row.verdict == Verdict::fail      ? "failure"
                     : row.verdict == Verdict::skipped ? "skipped"
                                                       : "error";
  pugi::xml_node what = test.append_child(name);
  what.append_attribute("message") = printable_line(row.why).c_str();
  if (row.verdict != Verdict::skipped)
    what.append_attribute("type") = std::string(to_text(row.verdict)).c_str();
  if (!row.remedy.empty()) what.text() = printable(row.remedy).c_str();
}

/// As the text format quotes the values of labels.
std::string label(std::string_view name, std::string_view value) {
  std::string quoted;
  for (const char c : printable_line(value)) {
    if (c == '\\' || c == '"') quoted += '\\';
    quoted += c;
  }
  return fmt::format("{}=\"{}\"", name, quoted);
}

std::string labels(const CheckRow& row) {
  std::string text = "{" + label("check", row.check) + "," + label("subject", row.subject);
  if (row.size_bytes > 0) text += "," + label("size_bytes", std::to_string(row.size_bytes));
  return text + "}";
}

}  // namespace

std::string junit_xml(std::span<const CheckRow> rows) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node suites = document.append_child("testsuites");
  suites.append_attribute("name") = "polyring accept";
  for (const std::vector<CheckRow>& of_check : by_check(rows)) {
    pugi::xml_node suite = suites.append_child("testsuite");
    suite.append_attribute("name") = of_check.front().check.c_str();
    suite.append_attribute("tests") = static_cast<int>(of_check.size());
    suite.append_attribute("failures") = count(of_check, {Verdict::fail});
    suite.append_attribute("errors") =
        count(of_check, {Verdict::error, Verdict::inconclusive, Verdict::missing});
    suite.append_attribute("skipped") = count(of_check, {Verdict::skipped});
    double seconds = 0;
    for (const CheckRow& row : of_check) seconds += row.seconds;
    suite.append_attribute("time") = fmt::format("{:.3f}", seconds).c_str();
    for (const CheckRow& row : of_check) add_case(suite, row);
  }
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

std::string prometheus_text(std::span<const CheckRow> rows, const std::string& created) {
  std::string text =
      "# HELP polyring_accept_verdict 1 for the verdict of the whole run\n"
      "# TYPE polyring_accept_verdict gauge\n";
  for (const Verdict verdict : kVerdicts)
    text += fmt::format("polyring_accept_verdict{{{}}} {}\n", label("verdict", to_text(verdict)),
                        overall(rows) == verdict ? 1 : 0);
  text +=
      "# HELP polyring_accept_pass 1 where what was judged passed, 0 where it did not\n"
      "# TYPE polyring_accept_pass gauge\n";
  // A series may come once only: that of several rows passes where all of them do.
  std::map<std::string, bool> passes;
  for (const CheckRow& row : rows) {
    if (!is_judgement(row.verdict)) continue;
    bool& pass = passes.try_emplace(labels(row), true).first->second;
    pass = pass && row.verdict == Verdict::pass;
  }
  for (const auto& [of_row, pass] : passes)
    text += fmt::format("polyring_accept_pass{} {}\n", of_row, pass ? 1 : 0);
  const auto add_values = [&](std::string_view name, std::string_view what, const auto& value_of) {
    std::string lines;
    for (const CheckRow& row : rows) {
      std::string of_row = labels(row);
      of_row.insert(1, label("quantity", row.quantity) + "," + label("unit", row.unit) + ",");
      if (const auto value = value_of(row))
        lines += fmt::format("polyring_accept_{}{} {}\n", name, of_row, *value);
    }
    if (!lines.empty())
      text += fmt::format("# HELP polyring_accept_{0} {1}\n# TYPE polyring_accept_{0} gauge\n{2}", name, what,
                          lines);
  };
  add_values("value", "Median of what was measured",
             [](const CheckRow& row) { return row.value ? std::optional(row.value->median) : std::nullopt; });
  add_values("least", "The value passes from here on", [](const CheckRow& row) { return row.least; });
  add_values("most", "The value passes up to here", [](const CheckRow& row) { return row.most; });
  return text + "# HELP polyring_accept_info When the run began\n# TYPE polyring_accept_info gauge\n" +
         fmt::format("polyring_accept_info{{{}}} 1\n", label("created", created));
}

}  // namespace polyring
