// SPDX-License-Identifier: MIT
// For tests: a /sys, /proc and /dev of their own in a temporary folder.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace enpu::tools {

class FakeTree {
  public:
    FakeTree() {
        std::string name = std::filesystem::temp_directory_path() / "enpu-tree-XXXXXX";
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
        root_ = name;
    }
    ~FakeTree() {
        std::error_code code;
        std::filesystem::remove_all(root_, code);
    }
    FakeTree(const FakeTree&) = delete;

    std::string root() const { return root_; }
    void write(const std::string& path, const std::string& text) const {
        const std::filesystem::path file = root_ + path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    void link(const std::string& path, const std::string& target) const {
        const std::filesystem::path file = root_ + path;
        std::filesystem::create_directories(file.parent_path());
        std::filesystem::remove(file);
        std::filesystem::create_symlink(target, file);
    }
    void remove(const std::string& path) const { std::filesystem::remove_all(root_ + path); }

    // An NPU as a healthy driver shows it.
    void device() const {
        const std::string folder = kPci;
        write(folder + "/vendor", "0x1234\n");
        write(folder + "/device", "0x4e50\n");
        write(folder + "/resource",
              "0x00000000fe000000 0x00000000fe03ffff 0x40200\n0x00000000fe040000 "
              "0x00000000fe040fff 0x40200\n0x00000000fe100000 0x00000000fe1fffff 0x14220c\n"
              "0x0 0x0 0x0\n0x0000000800000000 0x000000080fffffff 0x14220c\n0x0 0x0 0x0\n");
        link(folder + "/driver", "../../../bus/pci/drivers/enpu");
        write(folder + "/accel/accel0/dev", "261:0\n");
        write(folder + "/npu_busy_time_us", "1500000\n");
        write(folder + "/npu_memory_total", "268435456\n");
        write(folder + "/npu_memory_utilization", "12582912\n");
        write(folder + "/hangs", "3\n");
        write(folder + "/engine_resets", "2\n");
        write(folder + "/hwmon/hwmon4/temp1_input", "41500\n");
        write(folder + "/hwmon/hwmon4/power1_average", "3200000\n");
        write(folder + "/test_compute", "2\n");
        write(folder + "/test_copy", "2\n");
        write("/sys/module/enpu/srcversion", "ABC\n");
        write("/dev/accel/accel0", "");
        write("/sys/kernel/debug/accel/0000:01:00.0/queues",
              "0: compute0 as 0 ctx 1 state 2 error 0 tail 12 done 9 dead 0\n"
              "1: copy0 as 0 ctx 1 state 1 error 0 tail 5 done 4 dead 0\n");
    }
    static constexpr const char* kPci = "/sys/bus/pci/devices/0000:01:00.0";

  private:
    std::string root_;
};

}  // namespace enpu::tools
