// SPDX-License-Identifier: MIT
#include "register_sources.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "bare_device.h"
#include "device_dump.h"
#include "failure.h"
#include "output.h"
#include "system.h"

namespace enpu::tools {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void cannot(const std::string& what, int error) {
    throw Failure(exit_of(-error), what + ": " + std::strerror(error));
}

// debugfs file "registers" of the driver: pread and pwrite at a register's offset.
class DriverRegisters final : public RegisterFile {
  public:
    DriverRegisters(std::string name, const fs::path& file) : name_(std::move(name)) {
        fd_ = open(file.c_str(), O_RDWR | O_CLOEXEC);
        if (fd_ < 0) cannot(file.string(), errno);
    }
    ~DriverRegisters() override { close(fd_); }
    std::string name() const override { return name_; }
    uint64_t read(uint32_t offset, unsigned bytes) override {
        uint64_t value = 0;
        if (pread(fd_, &value, bytes, offset) != static_cast<ssize_t>(bytes))
            cannot("register " + hex(offset), errno);
        return value;
    }
    void write(uint32_t offset, uint64_t value, unsigned bytes) override {
        if (pwrite(fd_, &value, bytes, offset) != static_cast<ssize_t>(bytes))
            cannot("register " + hex(offset), errno);
    }

  private:
    std::string name_;
    int fd_ = -1;
};

class ResourceRegisters final : public RegisterFile {
  public:
    ResourceRegisters(std::string name, const fs::path& file) : name_(std::move(name)) {
        const int fd = open(file.c_str(), O_RDWR | O_SYNC | O_CLOEXEC);
        if (fd < 0) cannot(file.string(), errno);
        bar_ = mmap(nullptr, ENPU_BAR_REGS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        const int error = errno;
        close(fd);
        if (bar_ != MAP_FAILED) return;
        if (error != EINVAL && error != EPERM) cannot(file.string(), error);
        throw Failure(kNoPermission,
                      file.string() +
                          ": the kernel does not map registers that a driver holds; unbind the "
                          "driver, or mount debugfs and use the node");
    }
    ~ResourceRegisters() override { munmap(bar_, ENPU_BAR_REGS_SIZE); }
    std::string name() const override { return name_; }
    uint64_t read(uint32_t offset, unsigned bytes) override {
        const volatile char* at = static_cast<volatile char*>(bar_) + offset;
        return bytes == 8 ? *reinterpret_cast<const volatile uint64_t*>(at)
                          : *reinterpret_cast<const volatile uint32_t*>(at);
    }
    void write(uint32_t offset, uint64_t value, unsigned bytes) override {
        volatile char* at = static_cast<volatile char*>(bar_) + offset;
        if (bytes == 8)
            *reinterpret_cast<volatile uint64_t*>(at) = value;
        else
            *reinterpret_cast<volatile uint32_t*>(at) = static_cast<uint32_t>(value);
    }

  private:
    std::string name_;
    void* bar_ = MAP_FAILED;
};

class SavedRegisters final : public RegisterFile {
  public:
    SavedRegisters(std::string name, std::map<uint32_t, uint64_t> values)
        : name_(std::move(name)), values_(std::move(values)) {}
    std::string name() const override { return name_; }
    uint64_t read(uint32_t offset, unsigned) override {
        const auto found = values_.find(offset);
        if (found == values_.end())
            throw Failure(kUnsupported, name_ + " holds no register at " + hex(offset));
        return found->second;
    }
    void write(uint32_t, uint64_t, unsigned) override {
        throw Failure(kUnsupported, name_ + " is a file: its registers cannot be written");
    }
    bool holds(uint32_t offset) const override { return values_.count(offset) != 0; }

  private:
    std::string name_;
    std::map<uint32_t, uint64_t> values_;
};

std::unique_ptr<RegisterFile> open_saved(const std::string& file) {
    const auto text = read_bytes(file);
    if (!text) throw Failure(kNoDevice, file + " cannot be read");
    std::map<uint32_t, uint64_t> values;
    if (DeviceDump::is_dump(*text)) {
        for (const auto& reg : DeviceDump::parse(*text).registers) values[reg.offset] = reg.value;
        return std::make_unique<SavedRegisters>(file, std::move(values));
    }
    const auto json = nlohmann::json::parse(*text, nullptr, false);
    if (json.is_discarded() || !json.contains("registers") || !json["registers"].is_array())
        throw Failure(kUsage,
                      file + " is neither a device coredump nor written by 'enpu reg dump'");
    for (const auto& reg : json["registers"]) {
        if (!reg.contains("offset") || !reg.contains("value") ||
            !reg["offset"].is_number_unsigned() || !reg["value"].is_number_unsigned())
            throw Failure(kUsage, file + ": a register lacks offset or value");
        values[reg["offset"].get<uint32_t>()] = reg["value"].get<uint64_t>();
    }
    return std::make_unique<SavedRegisters>(file, std::move(values));
}

std::unique_ptr<RegisterFile> open_node(const std::string& spec) {
    const System system;
    for (const PciDevice& device : system.npus()) {
        const std::string node = "/dev/accel/" + device.node;
        if (spec != "npu" && spec != node) continue;
        const fs::path debugfs = "/sys/kernel/debug/accel/" + device.address + "/registers";
        std::error_code code;
        if (fs::exists(debugfs, code)) return std::make_unique<DriverRegisters>(node, debugfs);
        if (code == std::errc::permission_denied)
            throw Failure(kNoPermission, "registers of " + node + " are for root (debugfs)");
        return std::make_unique<ResourceRegisters>(device.address, device.folder / "resource0");
    }
    throw Failure(kNoDevice, spec == "npu" ? "no NPU on the PCI bus; 'enpu doctor' says why"
                                           : spec + " is no NPU of this machine");
}

}  // namespace

std::unique_ptr<RegisterFile> open_registers(const std::string& given) {
    const char* environment = std::getenv("ENPU_DEVICE");
    const std::string spec = !given.empty()                                ? given
                             : environment != nullptr && *environment != 0 ? environment
                                                                           : "npu";
    if (spec == "sim" || spec.rfind("sim:", 0) == 0)
        return open_model(spec == "sim" ? "" : spec.substr(4));
    if (spec.rfind("pci:", 0) == 0)
        return std::make_unique<ResourceRegisters>(
            spec, "/sys/bus/pci/devices/" + spec.substr(4) + "/resource0");
    if (spec == "npu" || spec.rfind("/dev/", 0) == 0) return open_node(spec);
    return open_saved(spec);
}

}  // namespace enpu::tools
