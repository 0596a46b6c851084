// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xf86drm.h>

#include <cerrno>
#include <cstring>
#include <enpu/enpu.hpp>

#include "doctor.h"
#include "drm/enpu_accel.h"
#include "lib/output.h"
#include "lib/system.h"
#include "loader.h"

namespace enpu::tools {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kWantedMemlock = 64 << 20;  // a batch of pictures and its results

class Doctor {
  public:
    explicit Doctor(const DoctorOptions& options) : system_(options.root) {}
    std::vector<Finding> run();

  private:
    void ok(const char* check, const std::string& found) {
        add({check, State::kOk, found, "", ""});
    }
    void fail(const char* check, const std::string& found, const char* means,
              const std::string& mend) {
        add({check, State::kFailed, found, means, mend});
        broken_ = broken_.empty() ? check : broken_;
    }
    void skip(const char* check, const std::string& why) {
        add({check, State::kSkipped, why, "", ""});
    }
    void add(Finding finding) { findings_.push_back(std::move(finding)); }

    void check_pci();
    void check_bars();
    void check_module();
    void check_binding();
    void check_node();
    void check_permission();
    void check_versions();
    void check_answer();
    void check_memlock();
    void check_backends();
    void check_plugin();

    System system_;
    std::vector<PciDevice> devices_;
    fs::path node_;
    std::string broken_;  // the first check that failed: those that build on it are skipped
    std::vector<Finding> findings_;
};

void Doctor::check_pci() {
    devices_ = system_.npus();
    if (!devices_.empty()) {
        ok("pci device",
           format("%zu, the first at %s", devices_.size(), devices_[0].address.c_str()));
        return;
    }
    fail("pci device", format("no device %04x:%04x on the bus", ENPU_PCI_VENDOR, ENPU_PCI_DEVICE),
         "this machine has no NPU; the simulator (--device sim) works without one",
         "start the guest with one: scripts/guest run --device enpu -- COMMAND");
}

void Doctor::check_bars() {
    const PciDevice& device = devices_[0];
    for (const int bar : {ENPU_BAR_REGS, ENPU_BAR_DOORBELL, ENPU_BAR_LOCAL}) {
        if (device.bar_bytes[static_cast<size_t>(bar)] != 0) continue;
        fail("pci bars", format("BAR %d has no address", bar),
             "the firmware or the kernel found no room for it",
             "give the port more room (pcie-root-port,pref64-reserve=2G) or shrink local-mem=");
        return;
    }
    ok("pci bars", "registers, doorbells, " + bytes_text(device.bar_bytes[ENPU_BAR_LOCAL]) +
                       " of local memory");
}

void Doctor::check_module() {
    if (system_.module_loaded()) {
        const auto version = read_text(system_.path("/sys/module/enpu/srcversion"));
        ok("kernel module", "enpu is loaded" + (version ? ", source " + *version : ""));
        return;
    }
    fail("kernel module", "enpu is not loaded", "nothing drives the device",
         "modprobe enpu; or, from the build: insmod build/kmod/enpu.ko");
}

void Doctor::check_binding() {
    const PciDevice& device = devices_[0];
    if (device.driver == "enpu") {
        ok("driver", "enpu is bound to " + device.address);
    } else if (device.driver.empty()) {
        fail("driver", "no driver is bound to " + device.address,
             "its probe failed, and said why in the kernel log",
             "dmesg | grep enpu; then: echo " + device.address +
                 " > /sys/bus/pci/drivers/enpu/bind");
    } else {
        fail("driver", device.driver + " is bound to " + device.address,
             "another driver holds the device",
             "echo " + device.address + " > /sys/bus/pci/drivers/" + device.driver +
                 "/unbind; echo " + device.address + " > /sys/bus/pci/drivers/enpu/bind");
    }
}

void Doctor::check_node() {
    const PciDevice& device = devices_[0];
    if (device.node.empty()) {
        fail("node", "no accel device below " + device.folder.string(),
             "the driver made no device node: its probe failed", "dmesg | grep enpu");
        return;
    }
    node_ = system_.path("/dev/accel/" + device.node);
    if (fs::exists(node_)) {
        ok("node", node_);
        return;
    }
    fail("node", node_.string() + " does not exist",
         "the kernel has the device, /dev does not: no udev or mdev runs, or a container hides it",
         "udevadm trigger --subsystem-match=accel; in a container: --device /dev/accel/" +
             device.node);
}

void Doctor::check_permission() {
    if (access(node_.c_str(), R_OK | W_OK) == 0) {
        ok("permission", "this user may open it");
        return;
    }
    const int error = errno;
    struct stat info = {};
    stat(node_.c_str(), &info);
    const struct group* group = getgrgid(info.st_gid);
    const std::string name = group ? group->gr_name : std::to_string(info.st_gid);
    const bool group_may = (info.st_mode & 060) == 060 && info.st_gid != 0;
    fail("permission",
         format("%s; mode %03o, group %s", std::strerror(error),
                static_cast<unsigned>(info.st_mode & 0777), name.c_str()),
         "accelerator nodes are root's alone unless a udev rule says otherwise",
         group_may ? "usermod -aG " + name + " $USER, then log in again"
                   : "cp kmod/60-enpu.rules /etc/udev/rules.d/ && udevadm control --reload && "
                     "udevadm trigger --subsystem-match=accel");
}

// Kernel interface, hardware and libenpu: each number, and which side is old.
void Doctor::check_versions() {
    const int fd = open(node_.c_str(), O_RDWR | O_CLOEXEC);
    drmVersion* version = fd < 0 ? nullptr : drmGetVersion(fd);
    if (version == nullptr) {
        fail("versions", std::string("the node does not open: ") + std::strerror(errno),
             "the driver refuses to open the device", "dmesg | grep enpu");
        if (fd >= 0) close(fd);
        return;
    }
    const int major = version->version_major, minor = version->version_minor;
    drmFreeVersion(version);
    close(fd);
    const std::string found =
        format("kernel interface %d.%d, this build %d.%d, libenpu API %d", major, minor,
               ENPU_UAPI_MAJOR, ENPU_UAPI_MINOR, ENPU_API_VERSION);
    if (major == ENPU_UAPI_MAJOR && minor >= ENPU_UAPI_MINOR) {
        ok("versions", found);
        return;
    }
    const bool module_old = major < ENPU_UAPI_MAJOR || major == ENPU_UAPI_MAJOR;
    fail("versions", found,
         module_old ? "the module is older than the libraries"
                    : "the libraries are older than the module",
         module_old ? "make kmod && rmmod enpu && insmod build/kmod/enpu.ko"
                    : "rebuild or upgrade libenpu and the enpu tool");
}

// One NOP from submission to fence.
void Doctor::check_answer() {
    try {
        const Device device = Device::open(node_.c_str());
        const Context context = Context::create(device);
        const Timeline timeline = Timeline::create(device);
        Builder builder(device, ENPU_ENGINE_KIND_COMPUTE);
        check([&](enpu_error* e) { return enpu_build_nop(builder.get(), e); });
        const int64_t begin = enpu_deadline_after(0);
        context.submit(0, builder.finish(), {}, {timeline.at(1)});
        context.wait(timeline, 1, enpu_deadline_after(10'000'000'000));
        const uint32_t version = device.info().hw_version;
        ok("answer", format("a NOP came back after %s; hardware %u.%u",
                            time_text(static_cast<double>(enpu_deadline_after(0) - begin)).c_str(),
                            static_cast<unsigned>(ENPU_FIELD_GET(ENPU_VERSION_MAJOR, version)),
                            static_cast<unsigned>(ENPU_FIELD_GET(ENPU_VERSION_MINOR, version))));
    } catch (const Error& error) {
        const char* means = error.code() == -EIO ? "the device is wedged: no reset brought it back"
                                                 : "driver and device do not get a job through";
        fail("answer", error.what(), means,
             "dmesg | grep enpu; then unbind and bind: echo " + devices_[0].address +
                 " > /sys/bus/pci/drivers/enpu/unbind; echo " + devices_[0].address +
                 " > /sys/bus/pci/drivers/enpu/bind");
    }
}

void Doctor::check_memlock() {
    struct rlimit limit = {};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    const std::string found =
        limit.rlim_cur == RLIM_INFINITY ? "no limit" : "limit " + bytes_text(limit.rlim_cur);
    if (geteuid() == 0 || limit.rlim_cur >= kWantedMemlock) {
        ok("memlock", found + (geteuid() == 0 ? ", not counted for root" : ""));
        return;
    }
    add({"memlock", State::kWarning, found,
         "wrapped and pinned host memory counts against it: beyond it calls fail with ENOMEM",
         "ulimit -l unlimited; for good: '* - memlock unlimited' in /etc/security/limits.conf"});
}

void Doctor::check_backends() {
    std::error_code code;
    const fs::path self = fs::read_symlink("/proc/self/exe", code).parent_path();
    // In the build, and as installed.
    setenv("ENPU_HAL_PATH",
           ((self / "../lib").string() + ":" + (self / "../" ENPU_LIBDIR).string()).c_str(), 0);
    const hal::Backends& backends = hal::backends();
    std::string names;
    for (const auto& backend : backends.loaded)
        names += (names.empty() ? "" : " ") + std::string(backend.plugin->name);
    for (const auto& refused : backends.refused)
        add({"hal backend", State::kWarning, refused.path + ": " + refused.reason,
             "this backend is not offered to programs", "rebuild it against this hal/include"});
    if (names.find("npu") != std::string::npos) {
        ok("hal backends", names);
        return;
    }
    fail("hal backends", names.empty() ? "none found" : names,
         "the runtime finds no backend for the NPU",
         "export ENPU_HAL_PATH=FOLDER of libenpu-hal-npu.so (build/lib)");
}

void Doctor::check_plugin() {
    std::error_code code;
    const fs::path self = fs::read_symlink("/proc/self/exe", code).parent_path();
    const std::vector<fs::path> places = {self / "../lib/libenpu-ort-ep.so",
                                          self / "libenpu-ort-ep.so",
                                          self / "../" ENPU_LIBDIR "/enpu/libenpu-ort-ep.so"};
    for (const fs::path& place : places) {
        if (!fs::exists(place)) continue;
        void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library != nullptr && dlsym(library, "CreateEpFactories") != nullptr) {
            ok("onnxruntime", fs::weakly_canonical(place, code).string());
        } else {
            fail("onnxruntime", library ? place.string() + " has no CreateEpFactories" : dlerror(),
                 "ONNX Runtime could not load the execution provider", "make cpp");
        }
        return;
    }
    add({"onnxruntime", State::kWarning, "libenpu-ort-ep.so is not beside this program",
         "ONNX Runtime programs name the plug-in by its path",
         "pip install enpu_onnxruntime-*.whl (make package), or make cpp"});
}

std::vector<Finding> Doctor::run() {
    struct Step {
        const char* name;
        void (Doctor::*check)();
        bool needs_device;
    };
    static constexpr Step kSteps[] = {
        {"pci device", &Doctor::check_pci, true},
        {"pci bars", &Doctor::check_bars, true},
        {"kernel module", &Doctor::check_module, true},
        {"driver", &Doctor::check_binding, true},
        {"node", &Doctor::check_node, true},
        {"permission", &Doctor::check_permission, true},
        {"versions", &Doctor::check_versions, true},
        {"answer", &Doctor::check_answer, true},
        {"memlock", &Doctor::check_memlock, false},
        {"hal backends", &Doctor::check_backends, false},
        {"onnxruntime", &Doctor::check_plugin, false},
    };
    for (const Step& step : kSteps) {
        const bool opens =
            step.check == &Doctor::check_versions || step.check == &Doctor::check_answer;
        if (step.needs_device && !broken_.empty())
            skip(step.name, "needs '" + broken_ + "'");
        else if (opens && !system_.real())
            skip(step.name, "not looked at with --root");
        else
            (this->*step.check)();
    }
    return std::move(findings_);
}

}  // namespace

const char* state_name(State state) {
    static constexpr const char* kNames[] = {"ok", "FAIL", "warn", "skip"};
    return kNames[static_cast<int>(state)];
}

std::vector<Finding> examine(const DoctorOptions& options) {
    return Doctor(options).run();
}

}  // namespace enpu::tools
