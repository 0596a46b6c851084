// SPDX-License-Identifier: MIT
// A device on the bus below any driver of its own: vfio-pci gives its BARs, its interrupts and a
// part of its bus address space, behind an IOMMU.
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "bare_device.h"
#include "failure.h"
#include "output.h"

namespace enpu::tools {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMemoryBytes = 128 << 20;
constexpr uint64_t kMemoryBus = 0x4000'0000;

[[noreturn]] void refuse(const std::string& what, int error) {
    throw Failure(error == EACCES || error == EPERM ? kNoPermission : kUnsupported,
                  what + ": " + std::strerror(error));
}

class File {
  public:
    File() = default;
    explicit File(int fd) : fd_(fd) {}
    File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    File& operator=(File&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~File() {
        if (fd_ >= 0) close(fd_);
    }
    int get() const { return fd_; }

  private:
    int fd_ = -1;
};

File open_file(const std::string& name) {
    const int fd = open(name.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) refuse(name, errno);
    return File(fd);
}

class VfioDevice final : public BareDevice {
  public:
    explicit VfioDevice(const std::string& address);
    ~VfioDevice() override;

    std::string name() const override { return "vfio:" + address_; }
    uint64_t read(uint32_t offset, unsigned bytes) override {
        const std::byte* at = part(ENPU_BAR_REGS, offset, bytes);
        return bytes == 8 ? *reinterpret_cast<const volatile uint64_t*>(at)
                          : *reinterpret_cast<const volatile uint32_t*>(at);
    }
    void write(uint32_t offset, uint64_t value, unsigned bytes) override {
        std::byte* at = part(ENPU_BAR_REGS, offset, bytes);
        if (bytes == 8)
            *reinterpret_cast<volatile uint64_t*>(at) = value;
        else
            *reinterpret_cast<volatile uint32_t*>(at) = static_cast<uint32_t>(value);
    }
    void doorbell(uint32_t queue) override {
        *reinterpret_cast<volatile uint32_t*>(
            part(ENPU_BAR_DOORBELL, uint64_t{queue} * ENPU_DOORBELL_STRIDE, 4)) = 1;
    }
    std::span<std::byte> memory() override { return {memory_, kMemoryBytes}; }
    uint64_t memory_bus() const override { return kMemoryBus; }
    std::span<std::byte> local() override { return bars_[ENPU_BAR_LOCAL]; }
    uint64_t interrupts(uint32_t vector) override;
    void function_reset() override;
    bool config(uint32_t offset, void* data, size_t bytes) override {
        return pread(device_.get(), data, bytes, static_cast<off_t>(config_at_ + offset)) ==
               static_cast<ssize_t>(bytes);
    }

  private:
    void open_group();
    void map_bar(uint32_t bar);
    void map_memory();
    void enable_interrupts();
    void bus_master();
    std::byte* part(uint32_t bar, uint64_t offset, uint64_t bytes) {
        if (offset > bars_[bar].size() || bytes > bars_[bar].size() - offset)
            throw Failure(kUnsupported,
                          name() + format(": BAR %u ends before ", bar) + hex(offset));
        return bars_[bar].data() + offset;
    }

    const std::string address_;
    File container_, group_, device_;
    uint64_t config_at_ = 0;
    std::array<std::span<std::byte>, 6> bars_{};
    std::byte* memory_ = nullptr;
    std::vector<File> events_;
    std::vector<uint64_t> counts_;
};

// The group must be wholly in the hands of vfio-pci.
void VfioDevice::open_group() {
    const fs::path folder = "/sys/bus/pci/devices/" + address_;
    std::error_code code;
    if (!fs::exists(folder, code)) throw Failure(kNoDevice, "no PCI device " + address_);
    const fs::path link = fs::read_symlink(folder / "iommu_group", code);
    if (code)
        throw Failure(kUnsupported, address_ +
                                        " is in no IOMMU group: boot with an IOMMU (QEMU: -device "
                                        "intel-iommu, kernel: intel_iommu=on)");
    if (fs::read_symlink(folder / "driver", code).filename() != "vfio-pci")
        throw Failure(kUnsupported, address_ + " is not bound to vfio-pci: write that to " +
                                        (folder / "driver_override").string() +
                                        ", unbind its driver, and write the address to "
                                        "/sys/bus/pci/drivers_probe");
    container_ = open_file("/dev/vfio/vfio");
    group_ = open_file("/dev/vfio/" + link.filename().string());
    vfio_group_status status{sizeof(status), 0};
    if (ioctl(group_.get(), VFIO_GROUP_GET_STATUS, &status) != 0) refuse("the group", errno);
    if (!(status.flags & VFIO_GROUP_FLAGS_VIABLE))
        throw Failure(kUnsupported, "another device of the IOMMU group of " + address_ +
                                        " has a driver that is not vfio-pci");
    const int container = container_.get();
    if (ioctl(group_.get(), VFIO_GROUP_SET_CONTAINER, &container) != 0)
        refuse("the group does not join the container", errno);
    if (ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) != 0)
        refuse("the IOMMU is not of type 1", errno);
    const int fd = ioctl(group_.get(), VFIO_GROUP_GET_DEVICE_FD, address_.c_str());
    if (fd < 0) refuse(address_, errno);
    device_ = File(fd);
}

void VfioDevice::map_bar(uint32_t bar) {
    vfio_region_info info{};
    info.argsz = sizeof(info);
    info.index = bar;
    if (ioctl(device_.get(), VFIO_DEVICE_GET_REGION_INFO, &info) != 0)
        refuse(format("BAR %u", bar), errno);
    void* mapped = mmap(nullptr, info.size, PROT_READ | PROT_WRITE, MAP_SHARED, device_.get(),
                        static_cast<off_t>(info.offset));
    if (mapped == MAP_FAILED) refuse(format("mapping BAR %u", bar), errno);
    bars_[bar] = {static_cast<std::byte*>(mapped), info.size};
}

void VfioDevice::map_memory() {
    void* mapped = mmap(nullptr, kMemoryBytes + ENPU_LARGE_PAGE_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) refuse("memory", errno);
    const auto at = (reinterpret_cast<uintptr_t>(mapped) + ENPU_LARGE_PAGE_SIZE - 1) &
                    ~uintptr_t{ENPU_LARGE_PAGE_SIZE - 1};
    memory_ = reinterpret_cast<std::byte*>(at);
    vfio_iommu_type1_dma_map map{};
    map.argsz = sizeof(map);
    map.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
    map.vaddr = at;
    map.iova = kMemoryBus;
    map.size = kMemoryBytes;
    if (ioctl(container_.get(), VFIO_IOMMU_MAP_DMA, &map) != 0)
        refuse("mapping memory for the device (RLIMIT_MEMLOCK counts)", errno);
}

void VfioDevice::enable_interrupts() {
    const uint32_t vectors =
        ENPU_FIELD_GET(ENPU_CAP_MISC_VECTORS, static_cast<uint32_t>(read(ENPU_REG_CAP_MISC, 4)));
    counts_.resize(vectors);
    std::vector<char> bytes(sizeof(vfio_irq_set) + vectors * sizeof(int32_t));
    auto* set = reinterpret_cast<vfio_irq_set*>(bytes.data());
    set->argsz = static_cast<uint32_t>(bytes.size());
    set->flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
    set->index = VFIO_PCI_MSIX_IRQ_INDEX;
    set->count = vectors;
    for (uint32_t vector = 0; vector < vectors; ++vector) {
        const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (fd < 0) refuse("eventfd", errno);
        events_.emplace_back(fd);
        std::memcpy(set->data + vector * sizeof(int32_t), &fd, sizeof(int32_t));
    }
    if (ioctl(device_.get(), VFIO_DEVICE_SET_IRQS, set) != 0)
        refuse(format("%u MSI-X vectors", vectors), errno);
}

void VfioDevice::bus_master() {
    uint16_t command = 0;
    if (!config(PCI_COMMAND, &command, sizeof(command)))
        refuse("the configuration space of " + address_, errno);
    command |= PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
    if (pwrite(device_.get(), &command, sizeof(command),
               static_cast<off_t>(config_at_ + PCI_COMMAND)) != sizeof(command))
        refuse("the configuration space of " + address_, errno);
}

uint64_t VfioDevice::interrupts(uint32_t vector) {
    if (vector >= counts_.size())
        throw Failure(kUnsupported, name() + format(" has no vector %u", vector));
    uint64_t more = 0;
    if (::read(events_[vector].get(), &more, sizeof(more)) == sizeof(more)) counts_[vector] += more;
    return counts_[vector];
}

void VfioDevice::function_reset() {
    if (ioctl(device_.get(), VFIO_DEVICE_RESET) != 0) refuse("function-level reset", errno);
    bus_master();
}

VfioDevice::VfioDevice(const std::string& address) : address_(address) {
    open_group();
    vfio_region_info info{};
    info.argsz = sizeof(info);
    info.index = VFIO_PCI_CONFIG_REGION_INDEX;
    if (ioctl(device_.get(), VFIO_DEVICE_GET_REGION_INFO, &info) != 0)
        refuse("the configuration space of " + address_, errno);
    config_at_ = info.offset;
    bus_master();
    for (const uint32_t bar : {ENPU_BAR_REGS, ENPU_BAR_DOORBELL, ENPU_BAR_LOCAL}) map_bar(bar);
    map_memory();
    enable_interrupts();
}

VfioDevice::~VfioDevice() {
    // The device must reach nothing of this process any more.
    if (device_.get() >= 0) ioctl(device_.get(), VFIO_DEVICE_RESET);
    for (const auto& bar : bars_)
        if (!bar.empty()) munmap(bar.data(), bar.size());
}

}  // namespace

std::unique_ptr<BareDevice> open_vfio(const std::string& address) {
    return std::make_unique<VfioDevice>(address);
}

}  // namespace enpu::tools
