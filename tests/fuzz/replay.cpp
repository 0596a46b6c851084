// SPDX-License-Identifier: MIT
// Runs the files of a corpus through a fuzz target, and then changed ones, without a fuzzer: any
// compiler, any sanitizer.   replay [--runs N] [--seconds N] [--seed N] FOLDER…
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Input = std::vector<uint8_t>;
constexpr size_t kLongest = 4096;

std::vector<std::filesystem::path> files_of(const std::vector<const char*>& folders) {
    std::vector<std::filesystem::path> files;
    for (const char* folder : folders)
        for (const auto& entry : std::filesystem::directory_iterator(folder))
            if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

Input read(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return Input{std::istreambuf_iterator<char>(in), {}};
}

// A byte changed, put in, or taken away; or the rest of another input.
void change(Input& input, const std::vector<Input>& others, std::mt19937_64& random) {
    const size_t at = input.empty() ? 0 : random() % input.size();
    switch (random() % 5) {
        case 0:
            if (!input.empty()) input[at] = static_cast<uint8_t>(random());
            return;
        case 1:
            if (!input.empty()) input[at] ^= static_cast<uint8_t>(1u << random() % 8);
            return;
        case 2:
            input.insert(input.begin() + static_cast<std::ptrdiff_t>(at),
                         static_cast<uint8_t>(random()));
            return;
        case 3:
            if (!input.empty()) input.erase(input.begin() + static_cast<std::ptrdiff_t>(at));
            return;
        default: {
            const Input& other = others[random() % others.size()];
            if (other.empty()) return;
            const size_t from = random() % other.size();
            input.resize(at);
            input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(from),
                         other.end());
            return;
        }
    }
}

// What a crash leaves for the one who looks for its reason.
void keep(const Input& input, const char* path) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(input.data()),
               static_cast<std::streamsize>(input.size()));
}

}  // namespace

int main(int count, char** arguments) {
    unsigned long runs = 0, seconds = 0, seed = 1;
    std::vector<const char*> folders;
    for (int i = 1; i < count; ++i) {
        if (std::strcmp(arguments[i], "--runs") == 0 && i + 1 < count)
            runs = std::strtoul(arguments[++i], nullptr, 0);
        else if (std::strcmp(arguments[i], "--seconds") == 0 && i + 1 < count)
            seconds = std::strtoul(arguments[++i], nullptr, 0);
        else if (std::strcmp(arguments[i], "--seed") == 0 && i + 1 < count)
            seed = std::strtoul(arguments[++i], nullptr, 0);
        else
            folders.push_back(arguments[i]);
    }
    std::vector<Input> inputs;
    for (const auto& file : files_of(folders)) {
        std::fprintf(stderr, "%s\n", file.filename().c_str());
        inputs.push_back(read(file));
        LLVMFuzzerTestOneInput(inputs.back().data(), inputs.back().size());
    }
    if (inputs.empty()) return std::fprintf(stderr, "there is no input\n"), 1;
    const char* last = std::getenv("ENPU_FUZZ_LAST");  // where each input goes before it runs
    std::mt19937_64 random(seed);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    unsigned long run = 0;
    for (; run < runs || std::chrono::steady_clock::now() < end; ++run) {
        Input input = inputs[random() % inputs.size()];
        for (uint64_t changes = 1 + random() % 4; changes > 0; --changes)
            change(input, inputs, random);
        if (input.size() > kLongest) input.resize(kLongest);
        if (last) keep(input, last);
        LLVMFuzzerTestOneInput(input.data(), input.size());
    }
    std::printf("%zu files, %lu changed ones, seed %lu\n", inputs.size(), run, seed);
    return 0;
}
