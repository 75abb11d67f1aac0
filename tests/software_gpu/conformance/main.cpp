// The conformance suite: asks a CUDA runtime, and compares its answers with the recorded ones.
//
//   conformance FILE           asks all; compares with the answers in FILE; exits 1 where one differs
//   conformance --print        prints all answers, in the form of such a file
//   conformance --only NAME    prints the answer to one question
#include <cuda_runtime_api.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "tests/software_gpu/conformance/questions.hpp"
#include "tests/software_gpu/conformance/tools.hpp"

using namespace polyring::software_gpu;

namespace {

constexpr unsigned kSecondsForOne = 60;
constexpr const char* kUnsure = " (unsure)";

std::vector<Question> all_questions() {
  std::vector<Question> all;
  for (const auto& part : {device_questions(), error_questions(), memory_questions(), copy_questions(),
                           stream_questions(), event_questions(), capture_questions(), ipc_questions()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

const char* asked_now = "";

void end_late(int) {
  const char text[] = ": no answer in a minute\n";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, asked_now, std::strlen(asked_now));
  written = write(STDERR_FILENO, text, sizeof text - 1);
  _exit(1);
}

std::string ask_here(const Question& question) {
  asked_now = question.name;
  alarm(kSecondsForOne);
  std::string answer = question.answer();
  alarm(0);
  cudaGetLastError();
  return answer;
}

/// Asks in a process of its own.
std::string ask_alone(const Question& question, const std::string& program) {
  const std::string command = "exec '" + program + "' --only " + question.name;
  std::FILE* const output = popen(command.c_str(), "r");
  if (output == nullptr) return "no process";
  char text[500] = {};
  if (std::fgets(text, sizeof text, output) == nullptr) text[0] = '\0';
  pclose(output);
  text[std::strcspn(text, "\n")] = '\0';
  return text;
}

/// How many devices are each other's peers, from the first on.
int peers() {
  int count = 0;
  NEED(cudaGetDeviceCount(&count));
  int reachable = 1;
  for (; reachable < count; ++reachable) {
    int there = 0, back = 0;
    NEED(cudaDeviceCanAccessPeer(&there, 0, reachable));
    NEED(cudaDeviceCanAccessPeer(&back, reachable, 0));
    if (there == 0 || back == 0) break;
  }
  return reachable;
}

struct Recorded {
  std::string answer;
  bool sure;
};

std::map<std::string, Recorded> read_answers(const char* path) {
  std::map<std::string, Recorded> answers;
  std::ifstream file(path);
  if (!file) {
    std::perror(path);
    std::exit(1);
  }
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    std::string answer = line.substr(colon + 2);
    const std::size_t mark = answer.rfind(kUnsure);
    const bool sure = mark == std::string::npos;
    answers[line.substr(0, colon)] = {sure ? answer : answer.substr(0, mark), sure};
  }
  return answers;
}

/// Whether the answer is the recorded one; says so where it is not.
bool is_recorded(const std::map<std::string, Recorded>& recorded, const char* name,
                 const std::string& answer) {
  const auto found = recorded.find(name);
  if (found == recorded.end()) {
    std::printf("%s: %s, and no answer is recorded\n", name, answer.c_str());
    return false;
  }
  if (found->second.answer == answer) return true;
  std::printf("%s: %s, but recorded is %s%s\n", name, answer.c_str(), found->second.answer.c_str(),
              found->second.sure ? "" : kUnsure);
  return false;
}

/// How many recorded answers are to no question; names them.
int count_unasked(const std::map<std::string, Recorded>& recorded, const std::vector<Question>& questions) {
  int unasked = 0;
  for (const auto& [name, answer] : recorded) {
    if (std::ranges::any_of(questions,
                            [&name = name](const Question& question) { return name == question.name; }))
      continue;
    std::printf("%s: an answer is recorded, but there is no such question\n", name.c_str());
    ++unasked;
  }
  return unasked;
}

int ask_all(const char* answers) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const auto recorded = answers == nullptr ? std::map<std::string, Recorded>{} : read_answers(answers);
  const int available = peers();
  warm_up();
  const std::vector<Question> questions = all_questions();
  int asked = 0, differing = count_unasked(recorded, questions), skipped = 0;
  for (const Question& question : questions) {
    if (question.devices > available) {
      ++skipped;
      continue;
    }
    const std::string answer = question.alone ? ask_alone(question, program) : ask_here(question);
    ++asked;
    if (answers == nullptr)
      std::printf("%s: %s\n", question.name, answer.c_str());
    else if (!is_recorded(recorded, question.name, answer))
      ++differing;
    std::fflush(stdout);
  }
  if (answers == nullptr) return 0;
  cudaDeviceProp properties;
  NEED(cudaGetDeviceProperties(&properties, 0));
  std::printf("%s: %d questions, %d answered otherwise than recorded, %d skipped (they need more devices)\n",
              properties.name, asked, differing, skipped);
  return differing == 0 ? 0 : 1;
}

int ask_one(const std::string& name) {
  for (const Question& question : all_questions()) {
    if (question.name != name) continue;
    warm_up();
    std::printf("%s\n", ask_here(question).c_str());
    return 0;
  }
  std::fprintf(stderr, "there is no question %s\n", name.c_str());
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  signal(SIGALRM, end_late);
  const std::string option = count > 1 ? arguments[1] : "";
  if (option == "--child" && count > 2) {
    alarm(kSecondsForOne);
    warm_up();
    std::printf("%s\n", answer_of_child(arguments[2]).c_str());
    return 0;
  }
  if (option == "--only" && count > 2) return ask_one(arguments[2]);
  if (option == "--print") return ask_all(nullptr);
  if (count == 2) return ask_all(arguments[1]);
  std::fprintf(stderr, "usage: conformance FILE, or --print, or --only NAME\n");
  return 1;
}
