// SPDX-License-Identifier: MIT
#include "own_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace enpu::test {
namespace {

constexpr const char* kFolder = "/tmp/own-copy";

int put(const char* path, const std::string& text) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return -errno;
    const int ret = write(fd, text.data(), text.size()) < 0 ? -errno : 0;
    close(fd);
    return ret;
}

}  // namespace

bool is_own_copy(const char* program) {
    return std::string(program).find(kFolder) == 0;
}

int run_own_copy(int argc, char** argv) {
    namespace fs = std::filesystem;
    const std::string loader = "ld-linux-x86-64.so.2";
    fs::create_directories(kFolder);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const size_t at = line.find('/');
        if (at == std::string::npos) continue;
        const fs::path file = line.substr(at);
        fs::copy_file(file, kFolder / file.filename(), fs::copy_options::overwrite_existing);
    }
    const std::string to = std::string(kFolder) + "/";
    std::vector<std::string> words{to + loader, "--library-path", kFolder,
                                   to + fs::read_symlink("/proc/self/exe").filename().string()};
    words.insert(words.end(), argv + 1, argv + argc);
    std::vector<char*> args;
    for (auto& word : words) args.push_back(word.data());
    args.push_back(nullptr);
    execv(args[0], args.data());
    perror(args[0]);
    return 1;
}

int sleep_devices(const char* state) {
    if (const int ret = put("/sys/power/pm_test", "devices"); ret < 0) return ret;
    put("/sys/module/suspend/parameters/pm_test_delay", "1");
    const int ret = put("/sys/power/state", state);
    const int restored = put("/sys/power/pm_test", "none");
    return ret < 0 ? ret : restored;
}

}  // namespace enpu::test
