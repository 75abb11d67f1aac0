// The main of a fuzz target where there is no libFuzzer: runs the target on seeds, on what harm is known to
// be done with, and on seeds that are damaged in ways that come out the same every time.
//
// Usage: replay NAME MUTATIONS FILE|FOLDER…
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.hpp"
#include "tests/sanitized.hpp"

namespace {

namespace fs = std::filesystem;
using Random = std::mt19937;

using polyring::kSanitized;

constexpr double kMostSeconds = kSanitized ? 60 : 20;  // hwloc alone gets 20
constexpr rlim_t kMostMemory = rlim_t{2} << 30;

/// Which input runs, for the handler of signals.
std::array<char, 200> running{};

extern "C" void name_input(int number) {
  const char* const end = std::find(running.begin(), running.end(), '\0');
  if (write(STDERR_FILENO, running.data(), static_cast<std::size_t>(end - running.data())) >= 0) {
    signal(number, SIG_DFL);
    raise(number);
  }
}

struct Seed {
  std::string name;
  std::string text;
};

std::vector<Seed> seeds_at(const fs::path& path) {
  std::vector<fs::path> files;
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
  } else {
    files.push_back(path);
  }
  std::ranges::sort(files);
  std::vector<Seed> seeds;
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    seeds.push_back({file.filename().string(), {std::istreambuf_iterator<char>(in), {}}});
  }
  return seeds;
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string nested(const std::string& open, const std::string& close, int depth) {
  return repeated(open, depth) + repeated(close, depth);
}

/// What a parser of XML, JSON or tables has fallen over before.
std::vector<Seed> known_harm() {
  std::string bomb = "<?xml version=\"1.0\"?><!DOCTYPE system [<!ENTITY e0 \"aaaaaaaaaa\">";
  for (int i = 1; i < 30; ++i) {
    bomb +=
        "<!ENTITY e" + std::to_string(i) + " \"" + repeated("&e" + std::to_string(i - 1) + ";", 10) + "\">";
  }
  const std::string doubled = "]><system version=\"1\"><cpu numaid=\"&e29;\"/></system>";
  std::string topology = bomb;
  topology.replace(topology.find("system"), 6, "topology");
  constexpr int kDeep = 100'000;
  return {
      {"nothing", ""},
      {"a zero", std::string(1, '\0')},
      {"zeros", std::string(1u << 20, '\0')},
      {"blanks", std::string(1u << 20, ' ')},
      {"lines", std::string(1u << 20, '\n')},
      {"bomb", bomb + doubled},
      {"hwloc bomb", topology + "]><topology version=\"2.0\"><info name=\"x\" value=\"&e29;\"/></topology>"},
      {"deep elements", "<system version=\"1\">" + nested("<cpu>", "</cpu>", kDeep) + "</system>"},
      {"deep switches", "<system version=\"1\"><cpu>" +
                            nested("<pci busid=\"0000:01:00.0\" class=\"0x06\">", "</pci>", kDeep) +
                            "</cpu></system>"},
      {"deep objects",
       "<topology version=\"2.0\">" + nested("<object type=\"Group\">", "</object>", kDeep) + "</topology>"},
      {"open elements", repeated("<system>", kDeep)},
      {"many attributes", "<system version=\"1\"" + repeated(" a=\"\"", kDeep) + "/>"},
      {"deep arrays", nested("[", "]", kDeep)},
      {"open arrays", repeated("[", kDeep)},
      {"open keys", repeated("{\"a\":", kDeep)},
      {"many columns", repeated("GPU0\t", kDeep)},
      {"distinct columns",
       [] {
         std::string head;
         for (int i = 0; i < kDeep; ++i) head += "\tGPU" + std::to_string(i);
         return head;
       }()},
      {"escapes", repeated("\x1b[", kDeep) + "GPU0"},
      {"dotted keys", repeated("a.", kDeep) + "a = 1\n"},
      {"fewer dotted keys", repeated("a.", 16'000) + "a = 1\n"},
      {"long number", std::string(kDeep, '9')},
  };
}

const std::vector<std::string>& absurd_values() {
  static const std::vector<std::string> kValues{"NaN", "-1", "0", "", "inf", "-inf", "1e999", "1e-999", "0x",
                                                "2147483648", "-2147483648", "18446744073709551616",
                                                "99999999999999999999999999", "1000000", "0.5", "-0", "null",
                                                "\"\"", "[]", "{}", "\xff\xfe",
                                                // Last, for they are long: given less often.
                                                std::string(70'000, '7'), nested("[", "]", 50'000)};
  return kValues;
}

/// Where numbers begin and end.
std::vector<std::pair<std::size_t, std::size_t>> numbers_in(const std::string& text) {
  std::vector<std::pair<std::size_t, std::size_t>> numbers;
  const auto is_digit = [&](std::size_t at) {
    return std::isdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_digit(at)) continue;
    std::size_t end = at;
    while (end < text.size() && (is_digit(end) || text[end] == '.')) ++end;
    numbers.emplace_back(at, end - at);
    at = end;
  }
  return numbers;
}

std::size_t below(std::size_t count, Random& random) { return count == 0 ? 0 : random() % count; }

/// The seed with one or a few things wrong.
std::string damaged(const std::string& seed, const std::string& other, Random& random) {
  std::string text = seed;
  const auto at = [&] { return below(text.size() + 1, random); };
  for (std::size_t times = 1 + below(3, random); times > 0; --times) {
    switch (below(7, random)) {
      case 0:  // a number is absurd
      case 1:
        if (const auto numbers = numbers_in(text); !numbers.empty()) {
          const auto [begin, length] = numbers[below(numbers.size(), random)];
          const std::size_t rare = below(8, random) == 0 ? 0 : 2;
          text.replace(begin, length, absurd_values()[below(absurd_values().size() - rare, random)]);
        }
        break;
      case 2:  // a byte is another
        if (!text.empty()) text[below(text.size(), random)] = static_cast<char>(random());
        break;
      case 3:  // the end is missing
        text.resize(at());
        break;
      case 4:  // something is missing
        text.erase(at(), below(64, random));
        break;
      case 5: {  // something is there again
        const std::string again = text.substr(at(), below(4096, random));
        text.insert(at(), again);
        break;
      }
      default:  // something comes from another file
        text.insert(at(), other.substr(below(other.size(), random), below(256, random)));
    }
  }
  return text;
}

/// Runs inputs and keeps the longest time.
class Runner {
 public:
  explicit Runner(std::string name) : name_(std::move(name)) {}

  void run(const std::string& label, const std::string& text) {
    const std::string line = "fuzz " + name_ + ": " + label + "\n";
    std::strncpy(running.data(), line.c_str(), running.size() - 1);
    const std::clock_t start = std::clock();  // processor time: other processes may keep the machine busy
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    longest_ = std::max(longest_, took);
    ++count_;
    polyring::fuzz::expect(took < kMostSeconds, "an input that takes too long: " + line);
  }

  void report() const { std::printf("%s: %d inputs, the longest %.2f s\n", name_.c_str(), count_, longest_); }

 private:
  std::string name_;
  int count_ = 0;
  double longest_ = 0;
};

void replay(Runner& runner, const std::vector<Seed>& seeds, unsigned mutations) {
  for (const Seed& seed : seeds) runner.run(seed.name, seed.text);
  for (const Seed& harm : known_harm()) runner.run(harm.name, harm.text);
  for (unsigned i = 0; i < mutations; ++i) {
    const Seed& seed = seeds[i % seeds.size()];
    Random random(i);
    const std::string& other = seeds[below(seeds.size(), random)].text;
    runner.run(seed.name + ", mutation " + std::to_string(i), damaged(seed.text, other, random));
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: replay NAME MUTATIONS FILE|FOLDER...\n");
    return 6;
  }
  if (!kSanitized) {
    const rlimit memory{kMostMemory, kMostMemory};
    setrlimit(RLIMIT_AS, &memory);
    for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE}) signal(number, name_input);
  }
  std::vector<Seed> seeds;
  for (int i = 3; i < count; ++i) {
    std::ranges::move(seeds_at(arguments[i]), std::back_inserter(seeds));
  }
  if (seeds.empty()) {
    std::fprintf(stderr, "replay: there are no seeds\n");
    return 1;
  }
  Runner runner(arguments[1]);
  try {
    replay(runner, seeds, static_cast<unsigned>(std::strtoul(arguments[2], nullptr, 10)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%sit threw: %s\n", running.data(), error.what());
    return 1;
  }
  runner.report();
  return 0;
}
