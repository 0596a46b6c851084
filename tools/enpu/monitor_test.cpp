// SPDX-License-Identifier: MIT
// A monitor that knows nothing of enpu, lm-sensors' `sensors`, lists the device in the guest.
#include <sys/wait.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace enpu::tools {
namespace {

// Awake as long as this lives: what a sleeping device's sensors say is nothing.
class Awake {
  public:
    Awake() { set("on"); }
    ~Awake() { set("auto"); }
    Awake(const Awake&) = delete;
    Awake& operator=(const Awake&) = delete;

  private:
    static void set(const char* mode) {
        for (const auto& entry : std::filesystem::directory_iterator("/sys/class/accel"))
            std::ofstream(entry.path() / "device/power/control") << mode;
    }
};

std::string output_of(const std::string& command) {
    FILE* pipe = popen(("timeout 20 " + command + " 2>&1").c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string text;
    char buffer[4096];
    while (const size_t bytes = fread(buffer, 1, sizeof(buffer), pipe)) text.append(buffer, bytes);
    const int status = pclose(pipe);
    INFO(text);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 0);
    return text;
}

TEST_CASE("lm-sensors lists the device with its temperature and power, unpatched") {
    // As the module's own tests do: a kernel without hwmon has no sensors to list.
    if (!std::filesystem::exists("/sys/class/hwmon")) SKIP("the kernel has no hwmon");
    const Awake awake;
    const auto self = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const std::string text = output_of((self / "sensors").string() + " -u");
    INFO(text);
    const auto chip = text.find("enpu-pci-");
    REQUIRE(chip != std::string::npos);
    const std::string ours = text.substr(chip, text.find("\n\n", chip) - chip);
    CHECK(ours.find("emulated:") != std::string::npos);
    const auto reading = [&](const char* name) {
        const auto at = ours.find(name);
        REQUIRE(at != std::string::npos);
        return std::stod(ours.substr(at + std::string(name).size()));
    };
    CHECK(reading("temp1_input: ") > 0);
    CHECK(reading("temp1_input: ") < 150);
    CHECK(reading("power1_input: ") > 0);
}

}  // namespace
}  // namespace enpu::tools
